'use strict';
// The page is whole without this. It asks for the page again twice a second while somebody looks, and
// changes what differs, so that focus, selection and scroll position stay.
(() => {
  const every = 500;
  const main = document.querySelector('main');
  const stale = document.getElementById('stale');
  let seen = new Date(), timer, asks = false;

  function patch(old, now) {
    if (old.nodeType !== now.nodeType || old.nodeName !== now.nodeName) {
      old.replaceWith(document.importNode(now, true));
      return;
    }
    if (old.nodeType === Node.TEXT_NODE) {
      if (old.data !== now.data) old.data = now.data;
      return;
    }
    if (old.nodeType !== Node.ELEMENT_NODE || old.isEqualNode(now)) return;
    for (const a of [...old.attributes]) if (!now.hasAttribute(a.name)) old.removeAttribute(a.name);
    for (const a of now.attributes) if (old.getAttribute(a.name) !== a.value) old.setAttribute(a.name, a.value);
    patchChildren(old, now);
  }

  // Children with an id, such as the rows of pods, are the same ones wherever they are; the others
  // are compared one after the other.
  function patchChildren(old, now) {
    const stays = new Set([...now.children].map(node => node.id));
    for (const node of [...old.children]) if (node.id && !stays.has(node.id)) node.remove();
    const known = new Map([...old.children].filter(node => node.id).map(node => [node.id, node]));
    let at = old.firstChild;
    for (const node of now.childNodes) {
      const same = node.id ? known.get(node.id) : at && !at.id ? at : null;
      if (node.id && same) {
        while (at && at !== same && !at.id) { const next = at.nextSibling; at.remove(); at = next; }
      }
      if (!same) { old.insertBefore(document.importNode(node, true), at); continue; }
      if (same === at) at = at.nextSibling; else old.insertBefore(same, at);
      patch(same, node);
    }
    while (at) { const next = at.nextSibling; at.remove(); at = next; }
  }

  async function refresh() {
    if (asks || document.hidden) return;
    clearTimeout(timer);
    asks = true;
    try {
      const answer = await fetch(location.href, {headers: {Accept: 'text/html'}, cache: 'no-store', signal: AbortSignal.timeout(5000)});
      const next = new DOMParser().parseFromString(await answer.text(), 'text/html');
      if (!next.querySelector('main')) throw new Error('no page');
      patch(main, next.querySelector('main'));
      document.title = next.title;
      seen = new Date();
      stale.hidden = true;
    } catch {
      const text = `monopod does not answer. What you see is of ${seen.toLocaleTimeString()}.`;
      if (stale.textContent !== text) stale.textContent = text;
      stale.hidden = false;
    }
    asks = false;
    timer = setTimeout(refresh, every);
  }

  document.addEventListener('visibilitychange', refresh);
  timer = setTimeout(refresh, every);
})();
