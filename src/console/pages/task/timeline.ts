import type { Schemas } from "../../api/schema.ts"
import type { Moment } from "../../components/Timeline.tsx"
import { showCredits } from "../../format/credits.ts"
import { millisBetween, showDuration } from "../../format/time.ts"
import { texts } from "../../texts/en.ts"
import { failureTexts } from "../../texts/en/failures.ts"
import { taskTexts } from "../../texts/en/task.ts"

type Task = Schemas["TaskTimeline"]
type Attempt = Task["attempts"][number]
type Delivery = Task["deliveries"][number]
type Entry = Task["entries"][number]

const words = taskTexts

const between = (from: string, to: string): string => showDuration(millisBetween(from, to))

const joined = (parts: ReadonlyArray<string | null>) => {
  const detail = parts.filter((it) => it !== null).join(", ")
  return detail === "" ? {} : { detail }
}

const showEntry = ({ amount, kind }: Entry): string => words.entry[kind](showCredits(amount))

const toneOfMove = (status: Task["status"]): Moment["tone"] => {
  if (status === "completed") return "good"
  return status === "failed" ? "bad" : "plain"
}

/** Each change of state with the money it moved: the first with the hold, the last with the charge. */
const movesOf = ({ entries, id, moves }: Task): ReadonlyArray<Moment> =>
  moves.map(({ at, status }, index) => {
    const isFirst = index === 0
    const isEnd = status === "completed" || status === "failed"
    const moved = entries.filter(({ kind }) => (kind === "hold" ? isFirst : isEnd && !isLate(kind)))
    return {
      id: `${id} ${index}`,
      at,
      title: isFirst ? words.createdTask : words.moved[status],
      tone: toneOfMove(status),
      ...joined(moved.map(showEntry))
    }
  })

const isLate = (kind: Entry["kind"]): boolean => kind === "late_charge"

const lateEntriesOf = ({ entries }: Task): ReadonlyArray<Moment> =>
  entries
    .filter(({ kind }) => isLate(kind))
    .map((entry) => ({
      id: `entry ${entry.seq}`,
      at: entry.created_at,
      title: showEntry(entry),
      tone: "plain"
    }))

const attemptOf = (attempt: Attempt): Moment => {
  const { account_id, answered_at, failure_class, n, started_at, state, vendor } = attempt
  const tone = state === "submitted" ? "good" : "bad"
  return {
    id: `attempt ${n}`,
    at: started_at,
    title: words.attempt(n, vendor),
    tone: answered_at === null ? "plain" : tone,
    ...joined([
      words.account(account_id),
      texts.status[state].toLowerCase(),
      failure_class,
      answered_at === null ? null : words.took(between(started_at, answered_at))
    ])
  }
}

/** The last attempt is shown; earlier ones are collapsed into one line. */
const attemptsOf = ({ attempts }: Task): ReadonlyArray<Moment> => {
  const last = attempts.at(-1)
  if (last === undefined) return []
  const earlier = attempts.slice(0, -1).map(attemptOf)
  const [first] = earlier
  return first === undefined
    ? [attemptOf(last)]
    : [
        {
          id: "earlier attempts",
          at: first.at,
          title: words.earlier(earlier.length),
          tone: "bad",
          folded: earlier
        },
        attemptOf(last)
      ]
}

/** One line per event; the delivery's page shows its attempts. */
const deliveryOf = ({ attempts, created_at, id, type }: Delivery): Moment => {
  const done = attempts.filter(({ ended_at }) => ended_at !== null)
  const last = done.at(-1)
  const isGood = last !== undefined && last.failure === null
  const tone = isGood ? "good" : "bad"
  return {
    id,
    at: done[0]?.started_at ?? created_at,
    title: words.delivery(type),
    tone: last === undefined ? "plain" : tone,
    to: `/webhooks/deliveries/${id}`,
    ...joined([
      last === undefined ? words.waits : null,
      last?.status == null ? null : words.answered(last.status),
      last?.failure == null || last.failure === "http_status" ? null : failureTexts[last.failure],
      last?.started_at == null || last.ended_at === null
        ? null
        : words.took(between(last.started_at, last.ended_at)),
      done.length > 1 ? words.attempts(done.length) : null
    ])
  }
}

/** What happened, from the create through the vendor's responses to the webhooks. */
export const timelineOf = (task: Task): ReadonlyArray<Moment> =>
  [
    ...movesOf(task),
    ...attemptsOf(task),
    ...lateEntriesOf(task),
    ...task.deliveries.map(deliveryOf)
  ].sort((one, other) => one.at.localeCompare(other.at))
