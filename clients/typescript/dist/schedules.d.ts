/** Schedules: what is started when, and what became of each time that it was due. */
import type { NewSchedule, Outcome, Schedule, ScheduleChange, SchedulePreview, ScheduleRun, ScheduleState, Times } from "./documents.ts";
import { type Page, type Speaking } from "./speaking.ts";
/** A schedule is named by its id or by its name, wherever one is meant. */
export declare class Schedules {
    #private;
    constructor(speaking: Speaking);
    /** Asked once: a repeated call would be refused by the name that the first one has taken. See `put`. */
    create(schedule: NewSchedule): Promise<Schedule>;
    /** Makes the one of this name, or changes it; asked until it is answered: whoever says the same twice has it once. */
    put({ name, ...schedule }: NewSchedule): Promise<Schedule>;
    list(which?: {
        state?: ScheduleState[];
        cursor?: string;
        limit?: number;
    }): Promise<Page<Schedule>>;
    get(schedule: string): Promise<Schedule>;
    change(schedule: string, change: ScheduleChange): Promise<Schedule>;
    delete(schedule: string, { reason }?: {
        reason?: string;
    }): Promise<void>;
    pause(schedule: string, why?: {
        reason?: string;
    }): Promise<Schedule>;
    /** It goes on from now; what was due meanwhile was missed. */
    resume(schedule: string, why?: {
        reason?: string;
    }): Promise<Schedule>;
    /** Due now, beside its times. Asked once: to trigger twice is to start twice. */
    trigger(schedule: string, why?: {
        reason?: string;
    }): Promise<ScheduleRun>;
    /** Starts the due times of a time that is past, both ends with: a hundred at most. */
    backfill(schedule: string, past: {
        from: string;
        to: string;
        reason?: string;
    }): Promise<ScheduleRun[]>;
    /** What became of its due times, the latest first. */
    runs(schedule: string, which?: {
        outcome?: Outcome[];
        cursor?: string;
        limit?: number;
    }): Promise<Page<ScheduleRun>>;
    /** Times in words, and the next of them; nothing is made. */
    preview(times: Times & {
        count?: number;
    }): Promise<SchedulePreview>;
}
