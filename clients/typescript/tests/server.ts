/** A tiny HTTP server whose answers a test writes down one after another. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void;

export class Scripted {
  readonly seen: {
    method: string;
    url: string;
    headers: IncomingMessage["headers"];
    body: string;
  }[] = [];
  readonly #server: Server;

  /** The last answer is given again and again. */
  constructor(...answers: Answer[]) {
    this.#server = createServer((request, response) => {
      let body = "";
      request.on("data", (piece) => (body += piece));
      request.on("end", () => {
        this.seen.push({
          method: request.method ?? "",
          url: request.url ?? "",
          headers: request.headers,
          body,
        });
        (answers.length > 1 ? answers.shift() : answers[0])!(request, response, body);
      });
    });
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

export const json =
  (status: number, document: unknown, headers: Record<string, string> = {}): Answer =>
  (_, response) =>
    response.writeHead(status, { "Content-Type": "application/json", ...headers }).end(JSON.stringify(document));

/** Sends the text as an event stream; then ends it, or tears the connection. */
export const events =
  (text: string, { torn = false } = {}): Answer =>
  (_, response) => {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.write(text, () => (torn ? response.socket?.destroy() : response.end()));
  };

export const event = (id: string | number, name: string, data: unknown): string =>
  `id: ${id}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
