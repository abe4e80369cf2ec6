/** Every call of the API, with the types of its OpenAPI document. */
import type { paths } from "../schema.d.ts";
import type { Problem } from "./documents.ts";
type Method = "get" | "put" | "post" | "patch" | "delete";
type PathOf<M extends Method> = {
    [P in keyof paths]: paths[P] extends Record<M, object> ? P : never;
}[keyof paths];
type Operation<P extends keyof paths, M> = M extends keyof paths[P] ? paths[P][M] : never;
/** Whether a caller may leave all of it out. */
type Optional<T, Yes, No> = Partial<T> extends T ? Yes : No;
type Placed<O extends {
    parameters: object;
}> = Pick<O["parameters"], keyof O["parameters"] & ("query" | "path")>;
type Params<O> = O extends {
    parameters: object;
} ? Optional<Placed<O>, {
    params?: Placed<O>;
}, {
    params: Placed<O>;
}> : never;
type Body<O> = O extends {
    requestBody: {
        content: infer C;
    };
} ? {
    body: BodyOf<C>;
} : O extends {
    requestBody?: {
        content: infer C;
    };
} ? {
    body?: BodyOf<C>;
} : {
    body?: never;
};
/** A file, such as an image, is sent as it is. */
type BodyOf<C> = C extends {
    "application/json": infer D;
} ? D : Blob;
type Init<O> = Params<O> & Body<O> & {
    headers?: HeadersInit;
    signal?: AbortSignal;
};
type Arguments<O> = Optional<Init<O>, [init?: Init<O>], [init: Init<O>]>;
type Json<R> = R extends {
    content: {
        "application/json": infer D;
    };
} ? D : undefined;
type Document<O> = O extends {
    responses: infer R;
} ? Json<R[keyof R & (200 | 201 | 202 | 204)]> : never;
/** `data` is the JSON document of a success, `error` that of a refusal. Anything else is left to be read from
 * `response`. */
export type Answer<D> = {
    data: D;
    error?: undefined;
    response: Response;
} | {
    data?: undefined;
    error: Partial<Problem>;
    response: Response;
};
/** `rest.GET("/api/v1/tasks/{task_id}", { params: { path: { task_id } } })`, and so on for every path and method. */
export type Rest = {
    [M in Method as Uppercase<M>]: <P extends PathOf<M>>(path: P, ...init: Arguments<Operation<P, M>>) => Promise<Answer<Document<Operation<P, M>>>>;
};
export declare function restOver(send: (path: string, init: RequestInit) => Promise<Response>): Rest;
export {};
