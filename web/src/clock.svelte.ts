/** The time, once a second while somebody looks. */

export const clock = $state({ now: Date.now() });

export function startClock(): void {
  setInterval(() => {
    if (document.visibilityState === "visible") clock.now = Date.now();
  }, 1000);
  document.addEventListener("visibilitychange", () => (clock.now = Date.now()));
}
