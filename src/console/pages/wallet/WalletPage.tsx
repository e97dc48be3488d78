import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { useLive } from "../../api/live.ts"
import { pageSize, usePages } from "../../api/pages.ts"
import { useResource } from "../../api/resource.ts"
import type { Schemas } from "../../api/schema.ts"
import { service } from "../../api/session.ts"
import { Tile, Tiles } from "../../components/chart/Tiles.tsx"
import { choiceIn, Filters, filterValues } from "../../components/form/Filters.tsx"
import type { Filter } from "../../components/form/Filters.tsx"
import { CsvLink } from "../../components/list/CsvLink.tsx"
import { PagedTable } from "../../components/list/PagedTable.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { BuyLink } from "../../components/shell/BuyLink.tsx"
import { Loaded } from "../../components/States.tsx"
import { Credits } from "../../components/Values.tsx"
import { isLow } from "../../format/credits.ts"
import { viewedUser } from "../../router/location.ts"
import { filterTexts } from "../../texts/en/filters.ts"
import { walletTexts } from "../../texts/en/wallet.ts"
import { rowsOf } from "./ledger.ts"
import { ledgerColumns } from "./ledgerColumns.tsx"
import { useWork } from "./useWork.ts"
import { WalletActions } from "./WalletActions.tsx"

const words = walletTexts
const kinds = ["top_up", "adjustment", "hold", "capture", "release", "late_charge"] as const

const filters: ReadonlyArray<Filter> = [
  {
    name: "kind",
    label: words.kind,
    kind: "choice",
    options: kinds.map((it) => [it, words.kinds[it]])
  },
  { name: "task_id", label: words.subjectId, kind: "text" },
  { name: "trace_id", label: filterTexts.traceId, kind: "text" },
  { name: "since", label: filterTexts.since, kind: "time" },
  { name: "until", label: filterTexts.until, kind: "time" },
  { name: "min_amount", label: words.minAmount, kind: "amount" },
  { name: "max_amount", label: words.maxAmount, kind: "amount" }
]

const names = ["task_id", "trace_id", "since", "until", "min_amount", "max_amount"] as const

/** `/wallet`: the balance and the ledger entries behind it. */
export default function WalletPage() {
  const user = viewedUser() ?? ""
  const search = { ...filterValues(names), ...choiceIn("kind", kinds) }
  const key = JSON.stringify([user, search])
  const balance = useResource(user, () => api.GET("/manage/v1/wallet", {}))
  const entries = usePages("ledger", search, async (page) => {
    const found = await api.GET("/manage/v1/wallet/entries", { query: { ...search, ...page } })
    return { ...found, data: Array.from(found.data, (it) => ({ ...it, id: String(it.seq) })) }
  })
  const work = useWork(entries.rows.find((it) => it.task_id !== null)?.task_id ?? undefined)
  const isBought = (service.value?.top_up_url ?? null) !== null
  const about = isBought ? words.about : `${words.about} ${words.askOperator}`
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set())
  const toggle = (id: string) =>
    setOpen((now) => new Set(now.has(id) ? [...now].filter((it) => it !== id) : [...now, id]))
  const [freshIn, setFresh] = useState<string | undefined>(undefined)
  const readAgain = () => {
    setFresh(undefined)
    balance.reload()
    entries.reload()
  }
  useLive((event) => {
    if (event.type === "poll" && entries.rows.length <= pageSize) readAgain()
    if (event.type !== "wallet" || balance.data === undefined) return
    if (JSON.stringify(event.data) === JSON.stringify(balance.data)) return
    balance.set(event.data)
    setFresh(key)
  })
  return (
    <>
      <PageHeader about={about}>
        {user === "" && <BuyLink />}
        {balance.data !== undefined && (
          <WalletActions wallet={balance.data} onChanged={readAgain} />
        )}
        <CsvLink path="/manage/v1/wallet/entries" query={search} />
      </PageHeader>
      <Loaded of={balance}>{(it) => <Balance wallet={it} />}</Loaded>
      <h2>{words.ledger}</h2>
      <Filters filters={filters} />
      {freshIn === key && (
        <p class="fresh" role="status">
          <button type="button" class="small" onClick={readAgain}>
            {words.fresh}
          </button>
        </p>
      )}
      <PagedTable
        words={words}
        search={search}
        columns={ledgerColumns({ open, work, onToggle: toggle })}
        pages={{ ...entries, rows: rowsOf(entries.rows), take: () => undefined }}
      />
    </>
  )
}

const Balance = ({ wallet }: { readonly wallet: Schemas["Wallet"] }) => {
  const isBelow = isLow(wallet)
  return (
    <Tiles>
      <Tile name={words.available} note={words.availableHelp} isBad={isBelow}>
        <Credits amount={wallet.available_balance} />
      </Tile>
      <Tile name={words.settled} note={words.settledHelp}>
        <Credits amount={wallet.settled_balance} />
      </Tile>
      <Tile name={words.held} note={words.heldHelp}>
        <Credits amount={wallet.held_balance} />
      </Tile>
      <Tile name={words.threshold} note={isBelow ? words.alerted : words.normal} isBad={isBelow}>
        <Credits amount={wallet.trigger_threshold} />
      </Tile>
    </Tiles>
  )
}
