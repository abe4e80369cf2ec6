/** Server-sent events: from text, however it is cut into pieces, to messages, as the HTML standard says. */
export interface Message {
    id: string;
    event: string;
    data: string;
}
export declare class Parser {
    #private;
    /** The id up to which everything has been given out; that of a message under way does not count yet. */
    place: string;
    /** What the server asks to wait before coming back, in milliseconds. */
    retryMs: number | undefined;
    /** The messages that this piece completes. */
    feed(piece: string): Generator<Message>;
}
