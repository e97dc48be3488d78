import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { useResource } from "../../api/resource.ts"
import type { Schemas } from "../../api/schema.ts"
import { Confirm } from "../../components/form/Dialog.tsx"
import { Filters, filterValues } from "../../components/form/Filters.tsx"
import type { Filter } from "../../components/form/Filters.tsx"
import { Id } from "../../components/Id.tsx"
import { Table } from "../../components/list/PagedTable.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Empty, Loaded, ProblemView } from "../../components/States.tsx"
import { Time } from "../../components/Values.tsx"
import { operatorTexts } from "../../texts/en/operator.ts"
import { Difference, rowsOf } from "./Difference.tsx"
import { priceColumns } from "./priceColumns.tsx"

const words = operatorTexts.catalog

type State = { readonly reload: Schemas["CatalogReload"] } | { readonly cause: unknown } | undefined

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
  const [state, setState] = useState<State>(undefined)
  const [isAsked, setAsked] = useState(false)
  const compare = () => {
    void reload(true).then(
      (it) => setState({ reload: it }),
      (cause: unknown) => setState({ cause })
    )
  }
  return (
    <>
      <PageHeader title={words.title} about={words.about}>
        <button type="button" onClick={compare}>
          {words.compare}
        </button>
        <button type="button" class="primary" onClick={() => setAsked(true)}>
          {words.adopt}
        </button>
      </PageHeader>
      <Outcome of={state} />
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
      {isAsked && (
        <Confirm
          title={words.adoptTitle}
          detail={words.adoptDetail}
          action={words.adopt}
          onConfirm={async () => {
            setState({ reload: await reload(false) })
            catalog.reload()
          }}
          onClose={() => setAsked(false)}
        />
      )}
    </>
  )
}

const Outcome = ({ of }: { readonly of: State }) => {
  if (of === undefined) return <div role="status" />
  if ("cause" in of) return <ProblemView cause={of.cause} />
  const { adopted, difference } = of.reload
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
    <div>
      <dt>{words.hash}</dt>
      <dd>
        <Id name={words.hash} value={catalog.hash} />
      </dd>
    </div>
    <div>
      <dt>{words.adopted}</dt>
      <dd>{catalog.adopted_at === null ? words.atStart : <Time at={catalog.adopted_at} />}</dd>
    </div>
    <div>
      <dt>{words.rows}</dt>
      <dd>{catalog.data.length}</dd>
    </div>
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
