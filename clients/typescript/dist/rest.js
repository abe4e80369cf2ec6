/** Every call of the API, with the types of its OpenAPI document. */
import { problemIn } from "./errors.js";
import { queryOf } from "./speaking.js";
export function restOver(send) {
    const calling = (method) => async (path, { params = {}, body, headers, ...init } = {}) => {
        const filled = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(String(params.path?.[name])));
        const all = new Headers(headers);
        // A session's changes have to be JSON, also without a body: no foreign page can send that unasked.
        if (method !== "GET" && !(body instanceof Blob))
            all.set("Content-Type", "application/json");
        const response = await send(filled + queryOf(params.query ?? {}), {
            ...init,
            method,
            headers: all,
            ...(body === undefined ? {} : { body: body instanceof Blob ? body : JSON.stringify(body) }),
        });
        if (!response.ok)
            return { error: problemIn(await response.text()), response };
        const isJson = response.headers.get("Content-Type")?.includes("json") ?? false;
        return { data: isJson ? await response.json() : undefined, response };
    };
    const methods = ["GET", "PUT", "POST", "PATCH", "DELETE"].map((method) => [method, calling(method)]);
    return Object.fromEntries(methods);
}
