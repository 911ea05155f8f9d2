// What must not wait for the modules: the token leaves the address, and the theme is known before anything is drawn.
(() => {
  function takeToken() {
    const fragment = new URLSearchParams(location.hash.slice(1));
    const token = fragment.get('token');
    if (token === null) return false;
    sessionStorage.setItem('token', token.trim());
    history.replaceState(null, '', location.pathname + location.search);
    return true;
  }

  takeToken();
  // A link that is pasted into a tab that is open already changes the fragment alone.
  addEventListener('hashchange', () => {
    if (takeToken()) location.reload();
  });

  const theme = localStorage.getItem('theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
})();
