// Sets the theme of the page before the browser paints it: the choice that this browser keeps for this origin, as the operators' pages do,
// or else the theme of the system. Swagger UI has its dark colours below this class.
(() => {
  const systemIsDark = matchMedia('(prefers-color-scheme: dark)');
  const set = () => {
    const chosen = localStorage.getItem('theme');
    const isDark = chosen === 'dark' || (chosen !== 'light' && systemIsDark.matches);
    document.documentElement.classList.toggle('dark-mode', isDark);
  };
  set();
  systemIsDark.addEventListener('change', set);
  // Another tab may have changed the choice.
  addEventListener('storage', set);
})();
