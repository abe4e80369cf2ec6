/** Where the page is: the URL is the only truth, and a link is a link. */

const here = (): URL => new URL(location.href);

let url = $state.raw(here());

export const place = {
  get path(): string {
    return url.pathname;
  },
  get query(): URLSearchParams {
    return url.searchParams;
  },
  get href(): string {
    return url.pathname + url.search;
  },
};

export function go(href: string, { replace = false } = {}): void {
  const next = new URL(href, location.href);
  if (next.href === location.href) return;
  if (replace) history.replaceState(null, "", next);
  else history.pushState(null, "", next);
  const moved = next.pathname !== url.pathname;
  url = next;
  if (moved && !replace) scrollTo(0, 0);
}

/** Follows links to this page without loading it anew; everything else stays the browser's. */
export function startRouting(): void {
  addEventListener("popstate", () => (url = here()));
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
      return;
    const link = (event.target as Element).closest("a");
    if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
    if (/^\/(api|schema|health|metrics)\b/.test(link.pathname)) return;
    // Within the page: the browser goes there by itself.
    if (link.hash && link.pathname + link.search === location.pathname + location.search) return;
    event.preventDefault();
    go(link.href);
  });
}
