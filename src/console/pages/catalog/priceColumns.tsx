import type { Schemas } from "../../api/schema.ts"
import type { Column } from "../../components/list/PagedTable.tsx"
import { operatorTexts } from "../../texts/en/operator.ts"
import { Price } from "../models/price.tsx"

type Row = Schemas["CatalogRow"]

const words = operatorTexts.catalog

/** Days begin at 00:00 UTC. */
const Valid = ({ valid_from: from, valid_until: until }: Row) => {
  const parts = [
    from === null ? "" : `${words.from} ${from.slice(0, 10)}`,
    until === null ? "" : `${words.until} ${until.slice(0, 10)}`
  ].filter(Boolean)
  return <>{parts.length === 0 ? words.always : parts.join(" ")}</>
}

export const priceColumns: ReadonlyArray<Column<Row>> = [
  {
    title: words.row,
    cell: ({ id, source, type }) => (
      <>
        <code>{id}</code>
        <div class="faint" title={source ?? undefined}>
          {words.kinds[type]}
        </div>
      </>
    )
  },
  { title: words.price, cell: (row) => <Price of={row} /> },
  { title: words.valid, cell: (row) => <Valid {...row} /> }
]
