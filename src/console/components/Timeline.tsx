import type { ComponentChildren } from "preact"
import { Time } from "./Values.tsx"

export interface Moment {
  readonly id: string
  readonly at: string
  readonly title: string
  readonly tone: "good" | "bad" | "going"
  readonly detail?: ComponentChildren
}

/** What happened, in the order of time. */
export const Timeline = ({ moments }: { readonly moments: ReadonlyArray<Moment> }) => (
  <ol class="timeline">
    {moments.map(({ at, detail, id, title, tone }) => (
      <li key={id} class={tone}>
        <span class="moment-title">{title}</span>
        {detail !== undefined && <span class="faint"> {detail}</span>}
        <span class="moment-time faint">
          <Time at={at} />
        </span>
      </li>
    ))}
  </ol>
)
