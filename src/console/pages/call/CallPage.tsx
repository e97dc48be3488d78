import type { ComponentChildren } from "preact"
import { api, dataOf } from "../../api/client.ts"
import { useResource } from "../../api/resource.ts"
import { CopyButton } from "../../components/CopyButton.tsx"
import { Link } from "../../components/Link.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Loaded } from "../../components/States.tsx"
import { Credits, Duration, Time } from "../../components/Values.tsx"
import { showDuration } from "../../format/time.ts"
import type { PageProps } from "../../routes.ts"
import { texts } from "../../texts/en.ts"
import { callTexts } from "../../texts/en/calls.ts"
import { taskTexts } from "../../texts/en/task.ts"
import { countIn, Outcome } from "../calls/tokens.tsx"
import type { Call } from "../calls/tokens.tsx"
import { CallContent } from "./CallContent.tsx"

const words = callTexts

/** `/calls/:id`: the receipt of one call. */
export default function CallPage({ params: { id = "" } }: PageProps) {
  const call = useResource(id, () =>
    dataOf(api.GET("/manage/v1/calls/{id}", { params: { path: { id } } }))
  )
  return (
    <>
      <PageHeader title={texts.pages.call} back={{ to: "/calls", name: texts.pages.calls }}>
        {call.data?.trace_id != null && (
          <CopyButton
            text={call.data.trace_id}
            what={texts.states.traceId}
            label={taskTexts.copyTrace}
          />
        )}
      </PageHeader>
      <Loaded of={call}>{(it) => <Receipt call={it} />}</Loaded>
    </>
  )
}

const Pair = ({
  children,
  name
}: {
  readonly name: string
  readonly children: ComponentChildren
}) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
)

const tokenNames = [
  "inputTokens",
  "cachedInputTokens",
  "cacheWriteTokens",
  "cacheWriteLongTokens",
  "audioInputTokens",
  "outputTokens",
  "reasoningTokens",
  "imageOutputTokens"
] as const

const Receipt = ({ call }: { readonly call: Call }) => (
  <>
    <div class="columns">
      <Details call={call} />
      <Money call={call} />
    </div>
    <CallContent key={call.id} call={call} />
  </>
)

const Details = ({ call }: { readonly call: Call }) => (
  <section>
    <h2>{taskTexts.details}</h2>
    <dl class="pairs">
      <Pair name={texts.filters.outcome}>
        <Outcome of={call.outcome} />
        {call.charged_late && ` ${words.chargedLate}`}
      </Pair>
      <Pair name={words.id}>
        <code>{call.id}</code>
      </Pair>
      <Pair name={texts.filters.vendor}>{call.vendor}</Pair>
      <Pair name={texts.filters.model}>{call.model ?? texts.none}</Pair>
      <Pair name={words.route}>
        <code>{call.route}</code>
      </Pair>
      <Pair name={words.answer}>{call.http_status ?? texts.none}</Pair>
      <Pair name={words.begun}>
        <Time at={call.created_at} />
      </Pair>
      <Pair name={texts.tasks.duration}>
        <Duration from={call.created_at} to={call.ended_at} />
      </Pair>
      <Pair name={words.firstToken}>
        {call.time_to_first_token_ms === null
          ? texts.none
          : showDuration(call.time_to_first_token_ms)}
      </Pair>
      <Pair name={texts.filters.account}>{call.account_id ?? texts.none}</Pair>
      {call.trace_id !== null && (
        <Pair name={texts.states.traceId}>
          <code>{call.trace_id}</code>
        </Pair>
      )}
      {call.catalog !== null && (
        <Pair name={taskTexts.catalog}>
          <code>{call.catalog}</code>
        </Pair>
      )}
    </dl>
  </section>
)

const Money = ({ call }: { readonly call: Call }) => (
  <section>
    <h2>{taskTexts.receipt}</h2>
    <dl class="pairs">
      <Pair name={taskTexts.held}>
        <Credits amount={call.held} />
      </Pair>
      <Pair name={taskTexts.captured}>
        <Credits amount={call.cost} />
      </Pair>
      {tokenNames.map((name) => {
        const count = countIn(call.usage, name)
        return count === undefined ? null : (
          <Pair key={name} name={words.tokenNames[name]}>
            <span class="number">{count.toLocaleString("en")}</span>
          </Pair>
        )
      })}
      {typeof call.usage?.["pricedAs"] === "string" && (
        <Pair name={words.pricedAs}>{call.usage["pricedAs"]}</Pair>
      )}
    </dl>
    {call.usage?.["counted"] === true && <p class="faint">{words.counted}</p>}
    <p>
      <Link to="/wallet" query={{ task_id: call.id }}>
        {words.entries}
      </Link>
    </p>
  </section>
)
