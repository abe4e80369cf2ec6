/** What the parts of the client have in common: how they ask, and what goes into a query and a body. */
export function queryOf(wanted) {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(wanted))
        for (const each of Array.isArray(value) ? value : [value])
            if (each !== undefined && each !== null)
                query.append(name, String(each));
    return query.size ? `?${query}` : "";
}
/** With a body also where nothing is to be said: a session's changes have to be JSON. */
export function json(method, body = {}, headers = {}) {
    const said = method === "DELETE" ? {} : { body: JSON.stringify(body) };
    return { method, headers: { "Content-Type": "application/json", ...headers }, ...said };
}
