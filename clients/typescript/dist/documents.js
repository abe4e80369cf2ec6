/** The shapes of the API by the names that one says, drawn from its OpenAPI document. */
export const ENDED = ["completed", "dead", "cancelled"];
export function hasEnded(task) {
    return ENDED.includes(task.status);
}
