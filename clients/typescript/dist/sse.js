/** Server-sent events: from text, however it is cut into pieces, to messages, as the HTML standard says. */
export class Parser {
    /** The id up to which everything has been given out; that of a message under way does not count yet. */
    place = "";
    /** What the server asks to wait before coming back, in milliseconds. */
    retryMs;
    #rest = "";
    #id = "";
    #event = "";
    #data = [];
    /** The messages that this piece completes. */
    *feed(piece) {
        for (const line of this.#lines(piece)) {
            if (line !== "") {
                this.#take(line);
                continue;
            }
            // Whoever is interrupted between the two asks for the message again, rather than miss it.
            if (this.#data.length)
                yield {
                    id: this.#id,
                    event: this.#event || "message",
                    data: this.#data.join("\n"),
                };
            this.place = this.#id;
            this.#event = "";
            this.#data = [];
        }
    }
    #lines(piece) {
        let text = this.#rest + piece;
        // A CR at the end may be half of a CR LF: it is judged when more has come.
        const held = text.endsWith("\r") ? "\r" : "";
        if (held)
            text = text.slice(0, -1);
        const lines = text.split(/\r\n|\r|\n/);
        this.#rest = lines.pop() + held;
        return lines;
    }
    #take(line) {
        const colon = line.indexOf(":");
        const name = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (name === "data")
            this.#data.push(value);
        else if (name === "event")
            this.#event = value;
        else if (name === "id" && !value.includes("\0"))
            this.#id = value;
        else if (name === "retry" && /^\d+$/.test(value))
            this.retryMs = Number(value);
    }
}
