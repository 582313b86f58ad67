/** @file Starts Altair, once it is there, with a tab for each of the jobs of the page. */
const root = document.querySelector('app-root');
const jobs = JSON.parse(root.dataset.jobs);
const endpointURL = new URL('/graphql', location.origin).href;

window.AltairGraphQL.init({
  endpointURL,
  cspNonce: root.dataset.nonce,
  disableAccount: true,
  preserveState: false,
  persistedSettings: {
    theme: 'light',
    'theme.dark': 'light',
    'banners.disable': true,
    'alert.disableUpdateNotification': true,
    disablePushNotification: true,
    'schema.reloadOnStart': true,
  },
  initialWindows: jobs.map(({ name, query }) => ({
    endpointURL,
    initialName: name,
    initialQuery: query,
    // A browser sends no such header to another site without asking first: the service wants it with files.
    initialHeaders: { 'apollo-require-preflight': 'true' },
  })),
});
// Altair asks for a donation after so many requests.
window.getAltairConfig().donation.action_count_threshold = Number.POSITIVE_INFINITY;

// Every new tab comes to the front: the first is brought back once all are there.
const observer = new MutationObserver(() => {
  const tabs = document.querySelectorAll('.window-switcher__item:not(.window-switcher__item--add-new)');
  if (tabs.length < jobs.length) return;
  observer.disconnect();
  tabs[0].click();
});
observer.observe(root, { childList: true, subtree: true });
