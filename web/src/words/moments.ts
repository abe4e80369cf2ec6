/** Moments as the clock on the wall of a zone shows them. */

const SHAPE: Intl.DateTimeFormatOptions = {
  weekday: "short",
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
  timeZoneName: "short",
};

/** `Wed 18 Nov, 02:30 CET`; a zone that this browser does not know is shown in UTC. */
export function inZone(at: string, timeZone = here()): string {
  return new Date(at).toLocaleString("en-GB", { ...SHAPE, timeZone: isZone(timeZone) ? timeZone : "UTC" });
}

export function here(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
}

/** Those that the browser knows, for who writes one. */
export function zones(): string[] {
  return ["UTC", ...Intl.supportedValuesOf("timeZone").filter((each) => each !== "UTC")];
}

function isZone(timeZone: string): boolean {
  try {
    new Date().toLocaleString("en", { timeZone });
    return true;
  } catch {
    return false;
  }
}

/** As `<input type="datetime-local">` has it, in this browser's zone. */
export function asLocal(moment: Date): string {
  const shifted = new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 16);
}
