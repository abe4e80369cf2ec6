/** The shared worker: one switchboard for all tabs of this browser. */

import type { FromTab } from "./messages.ts";
import { Switchboard } from "./switchboard.ts";

const switchboard = new Switchboard();
const scope = self as unknown as SharedWorkerGlobalScope;

scope.onconnect = ({ ports: [port] }) => {
  if (!port) return;
  port.onmessage = ({ data }: MessageEvent<FromTab>) => switchboard.hear(port, data);
  switchboard.join(port, (message) => port.postMessage(message));
};
