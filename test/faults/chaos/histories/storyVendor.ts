import { Clock, Duration, Effect } from "effect"
import type {
  ListedJob,
  SubmitRequest,
  VendorAccount
} from "../../../../src/vendors/VendorClient.ts"
import { VendorError } from "../../../../src/vendors/VendorError.ts"
import type { VendorErrorClass } from "../../../../src/vendors/VendorError.ts"

/** The response to one submit. With `sold` the job exists although the response does not show it. */
export type SubmitAnswer =
  | "retryable"
  | "limited"
  | "ambiguous, sold"
  | "ambiguous, not sold"
  | "accepted"

/** What the vendor does for a task, encoded in the task's prompt. */
export interface VendorStory {
  readonly submits: ReadonlyArray<SubmitAnswer>
  /** Seconds until the response to a submit. */
  readonly slow: number
  /** The number of polls that find the job running. */
  readonly polls: number
  /** The number of the poll that fails; 0: none. */
  readonly badPoll: number
  readonly ending: "done" | "failed" | "lost"
}

interface Job {
  readonly tag: string
  polls: number
  readonly story: VendorStory
  isCancelled: boolean
  readonly createdAtMillis: number
}

const failure = (kind: VendorErrorClass) => new VendorError({ class: kind, message: "as told" })

const storyOf = (body: unknown): { readonly tag: string; readonly story: VendorStory } =>
  JSON.parse(String((body as { readonly prompt: string }).prompt))

/** A vendor that outlives the processes of a history. */
export class StoryVendor {
  readonly jobs = new Map<string, Job>()
  readonly submits = new Map<string, number>()

  /** The number of jobs sold for a task. */
  sold(tag: string): number {
    return [...this.jobs.values()].filter((job) => job.tag === tag).length
  }

  /** The account as seen by a process; `alive` suspends what a dead or sleeping process would do. */
  account(alive: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>): VendorAccount {
    const sell = ({ story, tag }: ReturnType<typeof storyOf>, createdAtMillis: number): string => {
      const id = `job-${this.jobs.size + 1}`
      this.jobs.set(id, { tag, polls: 0, story, isCancelled: false, createdAtMillis })
      return id
    }
    const submit = ({ body }: SubmitRequest) =>
      Effect.gen({ self: this }, function* () {
        const asked = storyOf(body)
        const n = this.submits.get(asked.tag) ?? 0
        this.submits.set(asked.tag, n + 1)
        const answer = asked.story.submits[n] ?? "accepted"
        const id = /accepted|, sold/u.test(answer)
          ? sell(asked, yield* Clock.currentTimeMillis)
          : undefined
        if (asked.story.slow > 0) yield* Effect.sleep(Duration.seconds(asked.story.slow))
        if (answer === "retryable") return yield* failure("RETRYABLE")
        if (answer === "limited") return yield* failure("RATE_LIMITED")
        if (answer !== "accepted" || id === undefined) return yield* failure("AMBIGUOUS")
        return { _tag: "Accepted", handle: { id }, pollAfter: Duration.seconds(2) } as const
      })
    return {
      accountId: "story",
      submit: (request) => alive(submit(request)),
      poll: (handle) =>
        alive(
          Effect.gen({ self: this }, function* () {
            const job = this.jobs.get(String(handle["id"]))
            if (job === undefined) return yield* failure("LOST")
            job.polls += 1
            const { badPoll, ending, polls } = job.story
            if (job.polls === badPoll) return yield* failure("RETRYABLE")
            if (job.polls <= polls) {
              return { _tag: "Running", pollAfter: Duration.seconds(2) } as const
            }
            if (ending === "failed" || job.isCancelled) return yield* failure("FAILED")
            if (ending === "lost") return yield* failure("LOST")
            const items = [{ _tag: "Kept", url: `http://gateway.test/${job.tag}` } as const]
            return { _tag: "Done", result: { items } } as const
          })
        ),
      cancel: (handle) =>
        alive(
          Effect.sync(() => {
            const job = this.jobs.get(String(handle["id"]))
            if (job !== undefined) job.isCancelled = true
            return "Canceled" as const
          })
        ),
      list: ({ from, until }) =>
        alive(
          Effect.sync(() =>
            [...this.jobs]
              .filter(([, job]) => job.createdAtMillis >= from && job.createdAtMillis <= until)
              .map(([id, job]): ListedJob => ({
                jobId: id,
                createdAtMillis: job.createdAtMillis,
                compare: ({ body }) => (storyOf(body).tag === job.tag ? "same" : "other"),
                handle: () => ({ id })
              }))
          )
        )
    }
  }
}
