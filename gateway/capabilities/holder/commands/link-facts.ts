import { instant } from '../../../cli/output/figures.ts';
import type { KeyFacts } from '../../interfaces/commands.ts';
import type { LinksMember } from '../links/link-shape.ts';

/** Lists the links of a key in `keys show`. */
export const linkFacts: KeyFacts = ({ links = [] }) => links.map((link) => ['link', linkText(link)]);

/** Describes a link: "1a2b3c4d, made by alice, until 2026-12-05 10:30 UTC". */
export function linkText({ digestStart, by, untilAt }: LinksMember): string {
  return `${digestStart}, made by ${by}, until ${minuteText(untilAt)}`;
}

export function minuteText(at: string): string {
  return `${instant(at).slice(0, 16)} UTC`;
}
