import type { Schemas } from "../../api/schema.ts"
import type { Column } from "../../components/list/PagedTable.tsx"
import { Ago, Credits } from "../../components/Values.tsx"
import { operatorTexts } from "../../texts/en/operator.ts"

export type Account = Schemas["VendorAccount"]

const words = operatorTexts.accounts

const tones = { healthy: "good", degraded: "going", unavailable: "bad" } as const

const Health = ({
  circuit,
  configured,
  draining_since: since,
  health,
  models,
  paused_seconds,
  status
}: Account) => (
  <>
    <span class={`status ${tones[health]}`}>{words.healths[health]}</span>
    {status === "draining" && (
      <>
        <div class="second status going">{words.draining}</div>
        {since !== null && (
          <div class="second">
            {words.drainingSince} <Ago at={since} />
          </div>
        )}
      </>
    )}
    {!configured && <div class="second status bad">{words.left}</div>}
    <div>
      <Pause circuit={circuit} seconds={paused_seconds} />
    </div>
    {models.map(({ circuit: ofModel, model, paused_seconds: seconds }) =>
      ofModel === "closed" && seconds === 0 ? null : (
        <div key={model}>
          <code>{model}</code> <Pause circuit={ofModel} seconds={seconds} />
        </div>
      )
    )}
  </>
)

interface PauseProps {
  readonly circuit: Account["circuit"]
  readonly seconds: number
}

const Pause = ({ circuit, seconds }: PauseProps) => {
  const parts = [words.circuit[circuit], seconds > 0 ? words.paused(seconds.toFixed(0)) : ""]
  return <span class="faint">{parts.filter(Boolean).join(", ")}</span>
}

const Fault = ({ last_fault: fault }: Account) =>
  fault === null ? null : (
    <div class="second">
      {words.fault} <Ago at={fault.at} />, <code>{fault.model}</code>
      {fault.http_status !== null && ` ${words.httpStatus(fault.http_status)}`}: {fault.remedy}
    </div>
  )

const FailedCheck = ({ failed_check: check }: Account) =>
  check === null ? null : (
    <div class="second">
      {words.checkFailed} <Ago at={check.at} />
      {check.http_status !== null && `, ${words.httpStatus(check.http_status)}`}: {check.detail}
    </div>
  )

export const accountColumns: ReadonlyArray<Column<Account>> = [
  {
    title: words.account,
    isPlain: true,
    cell: ({ base_url: url, id }) => (
      <>
        <strong>{id}</strong>
        <div class="second" title={url}>
          {URL.parse(url)?.host ?? url}
        </div>
      </>
    )
  },
  {
    title: words.health,
    isPlain: true,
    cell: (account) => (
      <>
        <Health {...account} />
        <Fault {...account} />
        <FailedCheck {...account} />
      </>
    )
  },
  {
    title: words.load,
    cell: ({ rate, slots: { held, limit, waiting } }) => (
      <>
        {words.held(held, limit)}
        {waiting > 0 && <div class="second status going">{words.waiting(waiting)}</div>}
        {rate.map(({ limit: atMost, model, name, used }) => (
          <div key={`${name} ${model ?? ""}`} class="second">
            {words.rate(model === null ? name : `${name} ${model}`, used, atMost)}
          </div>
        ))}
      </>
    )
  },
  {
    title: words.spend,
    isNumber: true,
    cell: ({ spend_today: amount }) => <Credits amount={amount} />
  }
]
