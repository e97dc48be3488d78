import type { Schemas } from "../../api/schema.ts"
import { Tile, Tiles } from "../../components/chart/Tiles.tsx"
import { Table } from "../../components/list/PagedTable.tsx"
import type { Column } from "../../components/list/PagedTable.tsx"
import { Credits } from "../../components/Values.tsx"
import { sumCredits } from "../../format/credits.ts"
import { texts } from "../../texts/en.ts"
import { billTexts } from "../../texts/en/bills.ts"
import { MarginChart, MarginTile, nameOf, sumColumns } from "./BillReport.tsx"
import type { Margin } from "./BillReport.tsx"

type Report = Schemas["Reconciliation"]

const words = billTexts

/** A compared bill. */
export interface Bill {
  /** The file name. */
  readonly file: string
  readonly report: Report
}

interface Props {
  readonly bills: ReadonlyArray<Bill>
  /** The bill whose report is shown below. */
  readonly shown: Bill | undefined
  readonly onShow: (bill: Bill) => void
  readonly onRemove: (bill: Bill) => void
}

type Row = Margin & { readonly bill: Bill }

const billColumns = ({
  onRemove,
  onShow,
  shown
}: Omit<Props, "bills">): ReadonlyArray<Column<Row>> => [
  {
    title: words.file,
    isPlain: true,
    cell: ({ bill }) => (
      <>
        <button
          type="button"
          class="small"
          aria-pressed={bill === shown}
          onClick={() => onShow(bill)}
        >
          {nameOf(bill.report)}
        </button>
        <div class="second">{bill.file}</div>
      </>
    )
  },
  ...sumColumns,
  {
    title: texts.actions,
    isEnd: true,
    cell: ({ bill }) => (
      <button
        type="button"
        class="small"
        aria-label={words.removeBill(bill.file)}
        onClick={() => onRemove(bill)}
      >
        {words.remove}
      </button>
    )
  }
]

/** The margin over all bills compared since the page was opened. */
export const AllBills = ({ bills, ...shown }: Props) => {
  const reports = bills.map(({ report }) => report)
  const total = sumsOf(reports.map(({ margin }) => margin))
  return (
    <>
      <h2>{words.all(reports.length)}</h2>
      <Tiles>
        <Tile name={words.billed}>
          <Credits amount={total.billed} />
        </Tile>
        <Tile name={words.charged}>
          <Credits amount={total.charged} />
        </Tile>
        <MarginTile of={total} />
      </Tiles>
      <MarginChart
        from={reports.reduce((one, { from }) => (from < one ? from : one), reports[0]?.from ?? "")}
        to={reports.reduce((one, { to }) => (to > one ? to : one), "")}
        days={daysOf(reports)}
      />
      <Table
        caption={words.all(reports.length)}
        columns={billColumns(shown)}
        rows={bills.map((bill) => {
          const { billed, charged, margin } = bill.report.margin
          return { billed, charged, margin, bill }
        })}
        idOf={({ bill: { file, report } }) => `${report.vendor} ${file}`}
      />
    </>
  )
}

const sumsOf = (all: ReadonlyArray<Margin>): Margin => ({
  billed: sumCredits(all.map(({ billed }) => billed)),
  charged: sumCredits(all.map(({ charged }) => charged)),
  margin: sumCredits(all.map(({ margin }) => margin))
})

const daysOf = (reports: ReadonlyArray<Report>) =>
  Array.from(
    Map.groupBy(
      reports.flatMap(({ margin }) => margin.days),
      ({ day }) => day
    ),
    ([day, all]) => ({ day, ...sumsOf(all) })
  )
