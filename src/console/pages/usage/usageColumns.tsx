import type { Schemas } from "../../api/schema.ts"
import { Link } from "../../components/Link.tsx"
import type { Column } from "../../components/PagedTable.tsx"
import { Share } from "../../components/Share.tsx"
import { Credits } from "../../components/Values.tsx"
import { shareOfCredits, showCredits } from "../../format/credits.ts"
import { dayAfter } from "../../format/time.ts"
import { texts } from "../../texts/en.ts"
import type { UsageSearch } from "./usageSearch.ts"

type Usage = Schemas["Usage"]

const words = texts.usage

interface Shown {
  readonly search: UsageSearch
  readonly keyName: (id: string | null) => string
  /** The largest of the rows that are shown. */
  readonly most: string
}

const count = (name: string, of: (row: Usage) => number): Column<Usage> => ({
  title: name,
  isNumber: true,
  cell: (row) => of(row).toLocaleString("en")
})

/** What the rows are grouped by, then the sums. */
export const usageColumns = ({ keyName, most, search }: Shown): ReadonlyArray<Column<Usage>> => {
  const groups: Record<string, Column<Usage>> = {
    day: { title: words.day, cell: ({ day }) => day },
    key: { title: words.key, cell: ({ key }) => keyName(key) },
    model: { title: texts.filters.model, cell: ({ model }) => model ?? words.noModel }
  }
  return [
    ...search.by.split(",").flatMap((name) => groups[name] ?? []),
    {
      title: words.measures.amount,
      isNumber: true,
      cell: ({ amount }) => (
        <>
          <Credits amount={amount} />
          <Share name={showCredits(amount)} share={shareOfCredits(amount, most)} />
        </>
      )
    },
    count(words.measures.tasks, ({ tasks }) => tasks),
    count(words.measures.calls, ({ calls }) => calls),
    count(words.measures.input_tokens, ({ units }) => units.input_tokens),
    count(words.cached, ({ units }) => units.input_cached_tokens),
    count(words.measures.output_tokens, ({ units }) => units.output_tokens),
    count(words.measures.images, ({ units }) => units.images),
    count(words.measures.videos, ({ units }) => units.videos),
    count(words.seconds, ({ units }) => units.seconds),
    count(words.measures.audios, ({ units }) => units.audios),
    { title: words.rows, cell: (row) => <Rows row={row} search={search} /> }
  ]
}

/** From a sum to what it is made of. */
const Rows = ({ row, search }: { readonly row: Usage; readonly search: UsageSearch }) => {
  const from = row.day ?? search.day ?? search.from
  const to = row.day ?? search.day ?? search.to
  const query = {
    api_key_id: row.key ?? search.filters.api_key_id,
    model: row.model ?? search.filters.model,
    vendor: search.filters.vendor,
    since: `${from}T00:00:00.000Z`,
    until: `${dayAfter(to, 1)}T00:00:00.000Z`
  }
  return (
    <>
      <Link to="/tasks" query={query}>
        {texts.pages.tasks}
      </Link>
      {" · "}
      <Link to="/calls" query={query}>
        {texts.pages.calls}
      </Link>
    </>
  )
}
