import { createSignal } from './signal.js';

/** The page uses the system's theme until the operator chooses a theme. */

const systemIsDark = matchMedia('(prefers-color-scheme: dark)');
const changed = createSignal();
systemIsDark.addEventListener('change', changed.tell);

export function switchTheme() {
  const next = currentTheme() === 'dark' ? 'light' : 'dark';
  document.documentElement.dataset.theme = next;
  localStorage.setItem('theme', next);
  changed.tell();
}

/** The present theme. The component that uses the theme renders again when the theme changes. */
export function useTheme() {
  changed.use();
  return currentTheme();
}

/** @returns {'light' | 'dark'} */
function currentTheme() {
  const { theme } = document.documentElement.dataset;
  if (theme === 'light' || theme === 'dark') return theme;
  return systemIsDark.matches ? 'dark' : 'light';
}
