/** The order of a backlog: where an item goes, as the page shows it at once and as the API is told. */

interface Placed {
  item_id: string;
}

export interface Move<T extends Placed> {
  items: T[];
  change: { before: string } | { after: string };
  /** From 1. */
  place: number;
}

/** The item at another place of the list that is shown; nothing if it is there already, or if there is no such place. */
export function moved<T extends Placed>(items: readonly T[], itemId: string, place: number): Move<T> | undefined {
  const from = items.findIndex((each) => each.item_id === itemId);
  if (from < 0 || place === from || place < 0 || place >= items.length) return undefined;
  const others = items.filter((_, at) => at !== from);
  const item = items[from]!;
  const next = others[place];
  // The last place of a page is behind its neighbour: what the next page begins with is not known here.
  const change = next ? { before: next.item_id } : { after: others.at(-1)!.item_id };
  return { items: [...others.slice(0, place), item, ...others.slice(place)], change, place: place + 1 };
}

/** Where something goes that is dropped on the upper or lower half of a row. */
export function placeOfDrop(items: readonly Placed[], dragged: string, over: string, isLower: boolean): number {
  const from = items.findIndex((each) => each.item_id === dragged);
  const at = items.findIndex((each) => each.item_id === over) + Number(isLower);
  return from < at ? at - 1 : at;
}
