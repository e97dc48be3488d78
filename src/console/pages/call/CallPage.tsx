import { api } from "../../api/client.ts"
import { useResource } from "../../api/resource.ts"
import { IdPair } from "../../components/Id.tsx"
import { Link } from "../../components/Link.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Loaded } from "../../components/States.tsx"
import { Ago, Credits, None, Pair, Time } from "../../components/Values.tsx"
import { showCharge } from "../../format/credits.ts"
import { millisBetween, showDuration } from "../../format/time.ts"
import type { PageProps } from "../../routes.ts"
import { texts } from "../../texts/en.ts"
import { callTexts } from "../../texts/en/calls.ts"
import { filterTexts } from "../../texts/en/filters.ts"
import { taskTexts } from "../../texts/en/task.ts"
import { callName, countIn, Outcome } from "../calls/tokens.tsx"
import type { Call } from "../calls/tokens.tsx"
import { CallContent } from "./CallContent.tsx"

const words = callTexts

/** `/calls/:id`: the receipt of a call. */
export default function CallPage({ params: { id = "" } }: PageProps) {
  const call = useResource(id, () => api.GET("/manage/v1/calls/{id}", { path: { id } }))
  const title = call.data && callName(call.data)
  return (
    <>
      <PageHeader title={title} back="/calls" />
      <Loaded of={call}>{(it) => <Receipt call={it} />}</Loaded>
    </>
  )
}

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
    <p class="facts">
      <Outcome of={call.outcome} />
      {call.charged_late && <span class="faint">{words.chargedLate}</span>}
      <code>{call.route}</code>
      <Ago at={call.created_at} />
      <span>{taskTexts.ran(showDuration(millisBetween(call.created_at, call.ended_at)))}</span>
    </p>
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
      <Pair name={words.begun}>
        <Time at={call.created_at} />
      </Pair>
      <Pair name={words.firstToken}>
        {call.time_to_first_token_ms === null ? (
          <None />
        ) : (
          showDuration(call.time_to_first_token_ms)
        )}
      </Pair>
      <Pair name={words.answer}>{call.http_status ?? <None />}</Pair>
      <Pair name={filterTexts.account}>{call.account_id ?? <None />}</Pair>
      <IdPair name={words.id} value={call.id} />
      {call.trace_id !== null && <IdPair name={texts.states.traceId} value={call.trace_id} />}
      {call.catalog !== null && <IdPair name={texts.pages.catalog} value={call.catalog} />}
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
        {call.outcome === "settled" ? (
          <span class="number">{showCharge(call.cost)}</span>
        ) : (
          <Credits amount={call.cost} />
        )}
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
