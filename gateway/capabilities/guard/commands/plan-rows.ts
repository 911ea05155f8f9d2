import { limitsInView } from '../../../admin/settings/settings-view.ts';
import { instant } from '../../../cli/output/figures.ts';
import { toLimitFields } from '../../../keys/limits/limit-fields.ts';
import { wrapText } from '../../../shared/terminal/text-width.ts';
import { figure, percent } from '../../../shared/words/figures.js';
import type { PlanRows } from '../../interfaces/commands.ts';
import { reasonText, revertedLimitsText } from '../revert-text.ts';

export const guardRows: PlanRows = {
  column: {
    title: 'GUARD',
    isOptional: true,
    cell({ guard, reverted, watched }) {
      if (guard === undefined) return { text: '' };
      if (reverted !== undefined) return { text: 'reverted', tone: 'bad' };
      if (Date.parse(guard.untilAt) <= Date.now()) return { text: 'ended' };
      if (watched === undefined) return { text: 'watches no limit now' };
      const { requests, refused } = watched;
      const share = requests === 0 ? '0 %' : percent(refused / requests);
      return { text: `refused ${share} of ${figure(requests)} requests, at most ${guard.refusedAtMost}` };
    },
  },
  lines({ name, windows, reverted }, screen) {
    if (reverted === undefined) return [];
    const inForce = toLimitFields(limitsInView(windows));
    const change = revertedLimitsText({ edit: reverted.edit, inForce });
    const text = `The guard reverted ${name} at ${instant(reverted.sinceAt)} UTC (${change}), because ${reasonText(reverted)}.`;
    return wrapText(text, screen.columns);
  },
};
