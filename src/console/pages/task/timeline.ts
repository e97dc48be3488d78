import type { Schemas } from "../../api/schema.ts"
import type { Moment } from "../../components/Timeline.tsx"
import { showCredits } from "../../format/credits.ts"
import { millisBetween, showDuration } from "../../format/time.ts"
import { texts } from "../../texts/en.ts"

type Task = Schemas["TaskTimeline"]
type Delivery = Task["deliveries"][number]

const words = texts.task

const movesOf = ({ id, moves }: Task): ReadonlyArray<Moment> =>
  moves.map(({ at, status }, index) => ({
    id: `${id} ${index}`,
    at,
    title: index === 0 ? words.createdTask : words.moved[status],
    tone: toneOfMove(status)
  }))

const toneOfMove = (status: Task["status"]): Moment["tone"] => {
  if (status === "completed") return "good"
  return status === "failed" ? "bad" : "going"
}

const attemptsOf = ({ attempts }: Task): ReadonlyArray<Moment> =>
  attempts.flatMap(({ account_id, answered_at, failure_class, n, started_at, state, vendor }) => {
    const began: Moment = {
      id: `attempt ${n}`,
      at: started_at,
      title: words.attempt(n, vendor),
      tone: "going",
      detail: words.account(account_id)
    }
    if (answered_at === null) return [began]
    const parts = [texts.status[state], failure_class, words.took(between(started_at, answered_at))]
    const ended: Moment = {
      id: `answer ${n}`,
      at: answered_at,
      title: words.attemptEnd(n),
      tone: state === "submitted" ? "good" : "bad",
      detail: parts.filter((it) => it !== null).join(", ")
    }
    return [began, ended]
  })

const between = (from: string, to: string): string => showDuration(millisBetween(from, to))

const entriesOf = ({ entries }: Task): ReadonlyArray<Moment> =>
  entries.map(({ amount, created_at, kind, seq }) => ({
    id: `entry ${seq}`,
    at: created_at,
    title: words.entry[kind],
    tone: "going",
    detail: showCredits(amount)
  }))

const deliveryOf = ({ attempts, created_at, id, type }: Delivery): ReadonlyArray<Moment> => [
  {
    id,
    at: created_at,
    title: words.delivery(type),
    tone: "going",
    to: `/webhooks/deliveries/${id}`
  },
  ...attempts.map(({ due_at, ended_at, failure, seq, started_at, status }): Moment => {
    const isGood = ended_at !== null && failure === null
    const parts = [
      status === null ? null : words.answered(status),
      failure === null ? null : texts.failure[failure],
      started_at === null || ended_at === null ? null : words.took(between(started_at, ended_at))
    ].filter((it) => it !== null)
    return {
      id: `${id} ${seq}`,
      at: started_at ?? due_at ?? created_at,
      title: started_at === null ? words.deliveryDue(seq, type) : words.deliveryAttempt(seq, type),
      tone: attemptTone(isGood, failure !== null),
      ...(parts.length === 0 ? {} : { detail: parts.join(", ") })
    }
  })
]

const attemptTone = (isGood: boolean, isBad: boolean): Moment["tone"] => {
  if (isGood) return "good"
  return isBad ? "bad" : "going"
}

/** One line of what happened: from the create over the vendor's answers to the last webhook attempt. */
export const timelineOf = (task: Task): ReadonlyArray<Moment> =>
  [
    ...movesOf(task),
    ...entriesOf(task),
    ...attemptsOf(task),
    ...task.deliveries.flatMap(deliveryOf)
  ].sort((one, other) => one.at.localeCompare(other.at))
