import { assert, describe, it } from "@effect/vitest"
import { Option } from "effect"
import { TaskId } from "../../../src/domain/Ids.ts"
import { candidatesOf, certainJobs } from "../../../src/tasks/submission/JobMatch.ts"
import type { Claimant, FreeJob } from "../../../src/tasks/submission/JobMatch.ts"
import type { SubmitRequest } from "../../../src/vendors/VendorClient.ts"

/** docs/reference/vendors.md#reconciliation, ADR 0194: whose job it is. */

const idOf = (n: number) => TaskId.make(`00000000-0000-7000-8000-${String(n).padStart(12, "0")}`)
const request = (prompt: string) => ({ body: { prompt } }) as unknown as SubmitRequest

/** Task `n`, whose submit began at this second and lasted one second. */
const claimant = (n: number, prompt: string, at = 100, isWaiting = true): Claimant => ({
  taskId: idOf(n),
  from: at * 1000,
  until: (at + 1) * 1000,
  request: prompt === "erased" ? Option.none() : Option.some(request(prompt)),
  isWaiting,
  isOfLostTime: false
})

/** A job whose listing shows this prompt, or nothing of the request. */
const job = (jobId: string, prompt?: string, at = 100, calls?: number): FreeJob => ({
  job: {
    jobId,
    createdAtMillis: at * 1000,
    handle: () => ({ jobId }),
    compare: ({ body }) =>
      prompt === undefined
        ? "open"
        : (body as { prompt: string }).prompt === prompt
          ? "same"
          : "other"
  },
  calls: Option.map(Option.fromUndefinedOr(calls), idOf)
})

const found = (claimants: ReadonlyArray<Claimant>, free: ReadonlyArray<FreeJob>) =>
  Array.from(certainJobs(claimants, free), ([id, { jobId }]) => `${Number(id.slice(-12))}:${jobId}`)

describe("the job of a submit whose response was lost", () => {
  const cases: ReadonlyArray<
    readonly [string, ReadonlyArray<Claimant>, ReadonlyArray<FreeJob>, ReadonlyArray<string>]
  > = [
    ["is the only one that shows its request", [claimant(1, "a")], [job("j", "a")], ["1:j"]],
    ["is the only one if jobs show nothing", [claimant(1, "a")], [job("j")], ["1:j"]],
    ["does not match another request", [claimant(1, "a")], [job("j", "b")], []],
    [
      "goes to the task whose submit was at its time",
      [claimant(1, "a"), claimant(2, "a", 500)],
      [job("j", "a")],
      ["1:j"]
    ],
    [
      "is not one that shows nothing if others show its request",
      [claimant(1, "a")],
      [job("i", "a"), job("j", "a"), job("k")],
      []
    ],
    [
      "is not looked for if its task does not wait",
      [claimant(1, "a", 100, false)],
      [job("j", "a")],
      []
    ],
    [
      "shows its request if the submit is older than a restored store",
      [
        { ...claimant(1, "a"), isOfLostTime: true },
        { ...claimant(2, "b", 500), isOfLostTime: true }
      ],
      [job("j", "a"), job("k", undefined, 500)],
      ["1:j"]
    ],
    [
      "goes to the task with its request, however many are unsettled",
      [claimant(1, "a"), claimant(2, "b"), claimant(3, "c")],
      [job("i", "c"), job("j", "a")],
      ["1:j", "3:i"]
    ],
    [
      "belongs to no task if two tasks have the same request",
      [claimant(1, "a"), claimant(2, "a")],
      [job("j", "a")],
      []
    ],
    [
      "is not chosen from two that show the same request",
      [claimant(1, "a")],
      [job("i", "a"), job("j", "a")],
      []
    ],
    [
      "is not taken while another submit of that time may have bought it",
      [claimant(1, "a"), claimant(2, "b", 100, false)],
      [job("j")],
      []
    ],
    [
      "is taken when the other submit has another request",
      [claimant(1, "a"), claimant(2, "b", 100, false)],
      [job("j", "a")],
      ["1:j"]
    ],
    [
      "is not taken while another task's request is no longer known",
      [claimant(1, "a"), claimant(2, "erased", 100, false)],
      [job("j", "a")],
      []
    ],
    [
      "is taken without a shown request if the other submit's job is known",
      [claimant(1, "a"), claimant(2, "b")],
      [job("i", "b"), job("j")],
      ["2:i", "1:j"]
    ],
    [
      "is not taken without a shown request if another job shows the request",
      [claimant(1, "a"), claimant(2, "a")],
      [job("i", "a"), job("j")],
      []
    ],
    [
      "is not taken if it was created after the submit",
      [claimant(1, "a")],
      [job("j", "a", 112)],
      []
    ],
    [
      "is taken if it was created during the submit by a clock that differs by 10 s",
      [claimant(1, "a")],
      [job("j", "a", 111)],
      ["1:j"]
    ],
    [
      "is not taken if it may belong to another submit by a clock that differs by a minute",
      [claimant(1, "a"), claimant(2, "b", 160)],
      [job("j")],
      []
    ],
    [
      "is the one whose callback names the task",
      [claimant(1, "a"), claimant(2, "a")],
      [job("j", "a", 100, 2)],
      ["2:j"]
    ],
    [
      "belongs to no task if its callback names another",
      [claimant(1, "a")],
      [job("j", "a", 100, 9)],
      []
    ]
  ]
  for (const [what, claimants, free, expected] of cases) {
    it(what, () => assert.deepStrictEqual(found(claimants, free), expected))
  }

  it("may be any that was created in its time and shows no other request", () => {
    const free = [job("i"), job("j", "a"), job("k", "b"), job("l", "a", 130)]
    assert.deepStrictEqual(
      candidatesOf(claimant(1, "a"), free).map((it) => it.job.jobId),
      ["i", "j"]
    )
  })
})
