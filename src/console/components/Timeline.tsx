import type { ComponentChildren } from "preact"
import { Link } from "./Link.tsx"
import { Time } from "./Values.tsx"

export interface Moment {
  readonly id: string
  readonly at: string
  readonly title: string
  readonly tone: "good" | "bad" | "going"
  readonly detail?: ComponentChildren
  /** A page about it, below `/console`. */
  readonly to?: string
}

/** What happened, in the order of time. */
export const Timeline = ({ moments }: { readonly moments: ReadonlyArray<Moment> }) => (
  <ol class="timeline">
    {moments.map(({ at, detail, id, title, to, tone }) => (
      <li key={id} class={tone}>
        <span class="moment-title">{to === undefined ? title : <Link to={to}>{title}</Link>}</span>
        {detail !== undefined && <span class="faint"> {detail}</span>}
        <span class="moment-time faint">
          <Time at={at} />
        </span>
      </li>
    ))}
  </ol>
)
