/** Names made up here; also on plain HTTP, where browsers offer no `randomUUID`. */

export function madeUp(bytes = 16): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(bytes)), (byte) => byte.toString(16).padStart(2, "0")).join(
    "",
  );
}
