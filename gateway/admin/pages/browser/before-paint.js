// The theme must be known before the page is drawn, so it cannot wait for the modules.
(() => {
  const theme = localStorage.getItem('theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
})();
