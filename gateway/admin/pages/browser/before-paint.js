// This script sets the theme before the browser paints the page. The script is not a module, because the browser runs
// modules only after it has parsed the page.
(() => {
  const theme = localStorage.getItem('theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
})();
