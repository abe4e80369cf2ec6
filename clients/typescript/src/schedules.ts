/** Schedules: what is started when, and what became of each time that it was due. */

import type {
  NewSchedule,
  Outcome,
  Schedule,
  ScheduleChange,
  SchedulePreview,
  ScheduleRun,
  ScheduleState,
  Times,
} from "./documents.ts";
import { json, type Page, type Query, queryOf, type Speaking } from "./speaking.ts";

const ALL = "/api/v1/schedules";

/** A schedule is named by its id or by its name, wherever one is meant. */
export class Schedules {
  readonly #speaking: Speaking;

  constructor(speaking: Speaking) {
    this.#speaking = speaking;
  }

  /** Asked once: a repeated call would be refused by the name that the first one has taken. See `put`. */
  async create(schedule: NewSchedule): Promise<Schedule> {
    return (await this.#speaking.once(ALL, json("POST", schedule))) as Schedule;
  }

  /** Makes the one of this name, or changes it; asked until it is answered: whoever says the same twice has it once. */
  async put({ name, ...schedule }: NewSchedule): Promise<Schedule> {
    return (await this.#speaking.patiently(at(name), json("PUT", schedule))) as Schedule;
  }

  async list(which: { state?: ScheduleState[]; cursor?: string; limit?: number } = {}): Promise<Page<Schedule>> {
    return (await this.#speaking.patiently(ALL + queryOf(which), {})) as Page<Schedule>;
  }

  async get(schedule: string): Promise<Schedule> {
    return (await this.#speaking.patiently(at(schedule), {})) as Schedule;
  }

  async change(schedule: string, change: ScheduleChange): Promise<Schedule> {
    return (await this.#speaking.once(at(schedule), json("PATCH", change))) as Schedule;
  }

  async delete(schedule: string, { reason }: { reason?: string } = {}): Promise<void> {
    await this.#speaking.once(at(schedule, "", { reason }), json("DELETE"));
  }

  async pause(schedule: string, why: { reason?: string } = {}): Promise<Schedule> {
    return (await this.#speaking.patiently(at(schedule, "/pause"), json("POST", why))) as Schedule;
  }

  /** It goes on from now; what was due meanwhile was missed. */
  async resume(schedule: string, why: { reason?: string } = {}): Promise<Schedule> {
    return (await this.#speaking.patiently(at(schedule, "/resume"), json("POST", why))) as Schedule;
  }

  /** Due now, beside its times. Asked once: to trigger twice is to start twice. */
  async trigger(schedule: string, why: { reason?: string } = {}): Promise<ScheduleRun> {
    return (await this.#speaking.once(at(schedule, "/trigger"), json("POST", why))) as ScheduleRun;
  }

  /** Starts the due times of a time that is past, both ends with: a hundred at most. */
  async backfill(schedule: string, past: { from: string; to: string; reason?: string }): Promise<ScheduleRun[]> {
    const made = await this.#speaking.once(at(schedule, "/backfill"), json("POST", past));
    return (made as { items: ScheduleRun[] }).items;
  }

  /** What became of its due times, the latest first. */
  async runs(
    schedule: string,
    which: { outcome?: Outcome[]; cursor?: string; limit?: number } = {},
  ): Promise<Page<ScheduleRun>> {
    return (await this.#speaking.patiently(at(schedule, "/runs", which), {})) as Page<ScheduleRun>;
  }

  /** Times in words, and the next of them; nothing is made. */
  async preview(times: Times & { count?: number }): Promise<SchedulePreview> {
    return (await this.#speaking.patiently(`${ALL}/preview`, json("POST", times))) as SchedulePreview;
  }
}

function at(schedule: string, below = "", query: Query = {}): string {
  return `${ALL}/${encodeURIComponent(schedule)}${below}${queryOf(query)}`;
}
