import { useEffect, useState } from 'preact/hooks';

/** The page uses the system's theme until the operator chooses a theme. */

const systemIsDark = matchMedia('(prefers-color-scheme: dark)');
/** @type {Set<() => void>} */
const listeners = new Set();
systemIsDark.addEventListener('change', () => {
  for (const listener of listeners) listener();
});

/** @returns {'light' | 'dark'} */
function currentTheme() {
  const { theme } = document.documentElement.dataset;
  if (theme === 'light' || theme === 'dark') return theme;
  return systemIsDark.matches ? 'dark' : 'light';
}

export function switchTheme() {
  const next = currentTheme() === 'dark' ? 'light' : 'dark';
  document.documentElement.dataset.theme = next;
  localStorage.setItem('theme', next);
  for (const listener of listeners) listener();
}

/** The theme that is shown; drawn anew when it changes. */
export function useTheme() {
  const [theme, setTheme] = useState(currentTheme);
  useEffect(() => {
    const listener = () => setTheme(currentTheme());
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
    };
  }, []);
  return theme;
}
