import { useState } from "preact/hooks"
import { useAction } from "../../api/action.ts"
import { api } from "../../api/client.ts"
import { useResource } from "../../api/resource.ts"
import type { Schemas } from "../../api/schema.ts"
import { Confirm, DialogButton } from "../../components/form/DialogForm.tsx"
import { Filters, filterValues } from "../../components/form/Filters.tsx"
import type { Filter } from "../../components/form/Filters.tsx"
import { IdPair } from "../../components/Id.tsx"
import { Table } from "../../components/list/PagedTable.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Empty, Loaded, ProblemView } from "../../components/States.tsx"
import { Pair, Time } from "../../components/Values.tsx"
import { operatorTexts } from "../../texts/en/operator.ts"
import { Difference, rowsOf } from "./Difference.tsx"
import { priceColumns } from "./priceColumns.tsx"

const words = operatorTexts.catalog

const filters: ReadonlyArray<Filter> = [
  { name: "q", label: words.search, kind: "search" },
  { name: "at", label: words.at, kind: "time" }
]

const reload = (isDryRun: boolean) =>
  api.POST("/manage/v1/catalog/reload", isDryRun ? { query: { dry_run: "true" } } : {})

/** `/catalog`: the models on sale, what the catalog file would change, and the prices on any day. */
export default function CatalogPage() {
  const { at, q = "" } = filterValues(["at", "q"])
  const catalog = useResource(at ?? "", () =>
    api.GET("/manage/v1/catalog", { query: at === undefined ? {} : { at } })
  )
  const [compared, setCompared] = useState<Schemas["CatalogReload"] | undefined>(undefined)
  const { cause, forget, run } = useAction()
  const adopt = async () => {
    setCompared(await reload(false))
    forget()
    catalog.reload()
  }
  return (
    <>
      <PageHeader about={words.about}>
        <button type="button" onClick={() => void run(async () => setCompared(await reload(true)))}>
          {words.compare}
        </button>
        <DialogButton label={words.adopt} class="primary">
          {(close) => (
            <Confirm
              title={words.adoptTitle}
              detail={words.adoptDetail}
              action={words.adopt}
              onSubmit={adopt}
              onClose={close}
            />
          )}
        </DialogButton>
      </PageHeader>
      {cause === undefined ? <Outcome of={compared} /> : <ProblemView cause={cause} />}
      <Loaded of={catalog}>
        {(it) => (
          <>
            <About catalog={it} />
            <h2>{words.prices}</h2>
            <Filters filters={filters} />
            <Prices rows={it.data.filter(({ id }) => id.toLowerCase().includes(q.toLowerCase()))} />
          </>
        )}
      </Loaded>
    </>
  )
}

const Outcome = ({ of }: { readonly of: Schemas["CatalogReload"] | undefined }) => {
  if (of === undefined) return <div role="status" />
  const { adopted, difference } = of
  const rows = rowsOf(difference)
  return (
    <>
      <p role="status">
        {adopted && `${words.adoptedNow} `}
        {rows.length === 0 ? words.same : words.differs(rows.length)}
      </p>
      {rows.length > 0 && <Difference rows={rows} />}
    </>
  )
}

const About = ({ catalog }: { readonly catalog: Schemas["Catalog"] }) => (
  <dl class="pairs">
    <IdPair name={words.hash} value={catalog.hash} />
    <Pair name={words.adopted}>
      {catalog.adopted_at === null ? words.atStart : <Time at={catalog.adopted_at} />}
    </Pair>
    <Pair name={words.rows}>{catalog.data.length}</Pair>
  </dl>
)

const Prices = ({ rows }: { readonly rows: ReadonlyArray<Schemas["CatalogRow"]> }) => (
  <Table
    caption={words.prices}
    columns={priceColumns}
    rows={rows}
    idOf={({ id, type, valid_from: from }) => `${type} ${id} ${from ?? ""}`}
    empty={<Empty title={words.noMatch} />}
  />
)
