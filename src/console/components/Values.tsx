import { signal } from "@preact/signals"
import type { ComponentChildren } from "preact"
import { showCredits } from "../format/credits.ts"
import { millisBetween, showAgo, showDuration, showTime, utcOf } from "../format/time.ts"
import { texts } from "../texts/en.ts"

/** An exact amount. */
export const Credits = ({ amount }: { readonly amount: string }) => (
  <span class="number">{showCredits(amount)}</span>
)

/** Stands for a missing value. Cards on phones omit it. */
export const None = () => <span class="none faint">{texts.none}</span>

/** In the viewer's time zone; UTC on hover. */
export const Time = ({ at }: { readonly at: string | null }) =>
  at === null ? (
    <None />
  ) : (
    <time dateTime={at} title={utcOf(at)}>
      {showTime(at)}
    </time>
  )

const tickMillis = 10_000

/** Updated while the page is open. */
const now = signal(Date.now())
setInterval(() => {
  now.value = Date.now()
}, tickMillis)

/** The time elapsed, for lists; the exact time on hover. */
export const Ago = ({ at }: { readonly at: string | null }) =>
  at === null ? (
    <None />
  ) : (
    <time dateTime={at} title={`${showTime(at)} · ${utcOf(at)}`}>
      {showAgo(at, now.value)}
    </time>
  )

interface DurationProps {
  readonly from: string | null
  readonly to: string | null
}

export const Duration = ({ from, to }: DurationProps) =>
  from === null || to === null ? (
    <None />
  ) : (
    <span class="number">{showDuration(millisBetween(from, to))}</span>
  )

const tones: Readonly<Record<string, string>> = {
  completed: "good",
  succeeded: "good",
  submitted: "good",
  failed: "bad",
  refused: "bad",
  ambiguous: "bad"
}

export type StatusName = keyof typeof texts.status

/** A word with a color. The color adds no information. */
export const Status = ({ of }: { readonly of: StatusName }) => (
  <span class={`status ${tones[of] ?? "going"}`}>{texts.status[of]}</span>
)

/** A text of several lines, unchanged. */
export const Text = ({ label, text }: { readonly label: string; readonly text: string }) => (
  <pre class="json" tabIndex={0} role="region" aria-label={label}>
    {text}
  </pre>
)

/** A value as JSON text. */
export const Json = ({ label, value }: { readonly label: string; readonly value: unknown }) => (
  <Text label={label} text={JSON.stringify(value, null, 2)} />
)

interface PairProps {
  readonly name: string
  readonly children: ComponentChildren
}

/** A line of `<dl class="pairs">`. */
export const Pair = ({ children, name }: PairProps) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
)
