import type { Schemas } from "../../api/schema.ts"
import type { Column } from "../../components/PagedTable.tsx"
import { Credits, Time } from "../../components/Values.tsx"
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
      <div class="status going">
        {words.draining}
        {since !== null && (
          <>
            {" "}
            {words.drainingSince} <Time at={since} />
          </>
        )}
      </div>
    )}
    {!configured && <div class="status bad">{words.left}</div>}
    <Pause circuit={circuit} seconds={paused_seconds} />
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
  return <span class="faint">{parts.filter((it) => it !== "").join(", ")}</span>
}

const Fault = ({ last_fault: fault }: Account) =>
  fault === null ? (
    <span class="faint">{words.noFault}</span>
  ) : (
    <>
      <div>{fault.remedy}</div>
      <div class="faint">
        <code>{fault.model}</code>
        {fault.http_status !== null && ` ${words.httpStatus(fault.http_status)}`}{" "}
        <Time at={fault.at} />
      </div>
    </>
  )

export const accountColumns: ReadonlyArray<Column<Account>> = [
  {
    title: words.account,
    cell: ({ base_url: url, id }) => (
      <>
        <strong>{id}</strong>
        <div class="faint">{url}</div>
      </>
    )
  },
  { title: words.health, cell: (account) => <Health {...account} /> },
  {
    title: words.slots,
    cell: ({ slots: { held, limit, waiting } }) => (
      <>
        {words.held(held, limit)}
        {waiting > 0 && <div class="status going">{words.waiting(waiting)}</div>}
      </>
    )
  },
  {
    title: words.rates,
    cell: ({ rate }) =>
      rate.map(({ limit, model, name, used }) => (
        <div key={`${name} ${model ?? ""}`}>
          {words.rate(model === null ? name : `${name} ${model}`, used, limit)}
        </div>
      ))
  },
  {
    title: words.spend,
    isNumber: true,
    cell: ({ spend_today: amount }) => <Credits amount={amount} />
  },
  { title: words.fault, cell: (account) => <Fault {...account} /> }
]
