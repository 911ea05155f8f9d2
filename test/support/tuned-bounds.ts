import type { WindowsMs } from '../../gateway/shared/calendar-windows.ts';
import { type Bounds, defaultBounds } from '../../gateway/shared/timeouts-and-sizes.ts';

/** The default bounds, with some bounds replaced by the arguments. */
export function tunedBounds({
  windowsMs,
  ...tuning
}: Partial<Omit<Bounds, 'windowsMs'>> & { readonly windowsMs?: Partial<WindowsMs> | undefined }): Bounds {
  return { ...defaultBounds, ...tuning, windowsMs: { ...defaultBounds.windowsMs, ...windowsMs } };
}
