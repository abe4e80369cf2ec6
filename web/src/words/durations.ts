/** Times as people say them, short and always in the same shape, so that columns do not dance. */

export function duration(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds) / 1000;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${pad(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${pad(minutes % 60)} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** How long ago, in whole units: `now`, `12 s ago`, `in 3 min`. */
export function ago(then: number, now: number): string {
  if (Math.abs(now - then) < 1500) return "now";
  return now > then ? `${roughly(now - then)} ago` : `in ${roughly(then - now)}`;
}

/** The largest whole unit alone. */
export function roughly(milliseconds: number): string {
  const seconds = Math.round(Math.max(0, milliseconds) / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} d`;
}

function pad(value: number): string {
  return String(Math.floor(value)).padStart(2, "0");
}

export function count(value: number, one: string, many = `${one}s`): string {
  return `${value.toLocaleString("en")} ${value === 1 ? one : many}`;
}

export function money(usd: number): string {
  return `$${usd.toFixed(usd !== 0 && Math.abs(usd) < 0.1 ? 4 : 2)}`;
}
