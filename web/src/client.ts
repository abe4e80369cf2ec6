/** The door to the client: the page speaks to its own server, by its session's cookie. */

export * from "../../clients/typescript/src/index.ts";
