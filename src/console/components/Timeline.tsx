import type { ComponentChildren } from "preact"
import { millisBetween, showOffset, showTime, utcOf } from "../format/time.ts"
import { taskTexts } from "../texts/en/task.ts"
import { Link } from "./Link.tsx"

export interface Moment {
  readonly id: string
  readonly at: string
  readonly title: string
  readonly tone: "good" | "bad" | "plain"
  readonly detail?: ComponentChildren
  /** A page about the moment, below `/console`. */
  readonly to?: string
  /** Several moments of the same kind, shown on request. */
  readonly folded?: ReadonlyArray<Moment>
}

interface Props {
  /** In chronological order. */
  readonly moments: ReadonlyArray<Moment>
  /** The time of the very first moment. Absent: the first of these moments. */
  readonly start?: string
}

/** A list of events: the first with its time, the others with the time since the first. */
export const Timeline = ({ moments, start }: Props) => {
  const zero = start ?? moments[0]?.at ?? ""
  return (
    <ol class="timeline">
      {moments.map(({ at, detail, folded, id, title, to, tone }, index) => (
        <li key={id} class={tone}>
          <span class="moment-title">
            {to === undefined ? title : <Link to={to}>{title}</Link>}
          </span>
          <time class="moment-time" dateTime={at} title={`${showTime(at)} · ${utcOf(at)}`}>
            {index === 0 && start === undefined
              ? showTime(at)
              : showOffset(millisBetween(zero, at))}
          </time>
          {detail !== undefined && <span class="moment-detail">{detail}</span>}
          {folded !== undefined && (
            <details class="moment-detail">
              <summary>{taskTexts.show}</summary>
              <Timeline moments={folded} start={zero} />
            </details>
          )}
        </li>
      ))}
    </ol>
  )
}
