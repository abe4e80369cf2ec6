/** The same task again, as one would write it in three languages. */

export interface Request {
  actor: string;
  provider: string;
  payload: string;
  task_type?: string | null;
  tags?: readonly string[];
}

/** What `POST /tasks` takes, as text: the payload stays as it was sent. */
export function bodyOf({ actor, provider, payload, task_type, tags }: Request): string {
  const members = [`"actor": ${JSON.stringify(actor)}`, `"provider": ${JSON.stringify(provider)}`];
  if (task_type) members.push(`"task_type": ${JSON.stringify(task_type)}`);
  if (tags?.length) members.push(`"tags": ${JSON.stringify(tags)}`);
  return `{${[...members, `"payload": ${payload}`].join(", ")}}`;
}

export function asCurl(request: Request, origin: string): string {
  const body = bodyOf(request).replaceAll("'", `'\\''`);
  return [
    `curl ${origin}/api/v1/tasks \\`,
    `  -H "Authorization: Bearer $WINDLASS_API_KEY" \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d '${body}'`,
  ].join("\n");
}

export function asPython(request: Request, origin: string): string {
  return [
    "import json, os",
    "from windlass import Client",
    "",
    `with Client(${JSON.stringify(origin)}, key=os.environ["WINDLASS_API_KEY"]) as client:`,
    `    payload = json.loads(${pythonText(request.payload)})`,
    `    task = client.submit(${JSON.stringify(request.actor)}, payload, provider=${JSON.stringify(request.provider)})`,
    "    print(client.wait(task.task_id).result)",
  ].join("\n");
}

export function asTypeScript(request: Request, origin: string): string {
  return [
    `import { Windlass } from "windlass-client";`,
    "",
    `const windlass = new Windlass({ url: ${JSON.stringify(origin)}, key: process.env.WINDLASS_API_KEY });`,
    `const task = await windlass.createTask(${bodyOf(request)});`,
    `for await (const event of windlass.streamTask(task.task_id)) console.log(event);`,
  ].join("\n");
}

/** JSON's escapes are Python's too, but for the surrogates, which stay as they are. */
function pythonText(text: string): string {
  return JSON.stringify(text);
}
