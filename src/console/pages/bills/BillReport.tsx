import type { ComponentChildren } from "preact"
import type { Schemas } from "../../api/schema.ts"
import { LineChart } from "../../components/chart/LineChart.tsx"
import { Tile, Tiles } from "../../components/chart/Tiles.tsx"
import { Id } from "../../components/Id.tsx"
import { Table } from "../../components/list/PagedTable.tsx"
import type { Column } from "../../components/list/PagedTable.tsx"
import { Credits, None } from "../../components/Values.tsx"
import { parseCredits, showCredits } from "../../format/credits.ts"
import { daysBetween, showDay, showDays, showFullDay } from "../../format/days.ts"
import { showAxis } from "../../format/scale.ts"
import { texts } from "../../texts/en.ts"
import { billTexts } from "../../texts/en/bills.ts"

type Report = Schemas["Reconciliation"]
export type Margin = Pick<Report["margin"], "billed" | "charged" | "margin">
type Difference = Report["differences"][number]
type Uncharged = Report["bought_not_charged"]["data"][number]
type Unbilled = Report["charged_not_bought"]["data"][number]

const words = billTexts

const vendorNames: Readonly<Record<string, string>> = words.vendors

/** The vendor and the period of a bill. */
export const nameOf = ({ from, to, vendor }: Report): string =>
  words.result(vendorNames[vendor] ?? vendor, showDays(from, to))

/** The result of comparing a bill. */
export const BillReport = ({ report }: { readonly report: Report }) => {
  const { billed, bought_not_charged: uncharged, differences, lines } = report
  const { charged_not_bought: unbilled, margin, matched } = report
  return (
    <>
      <h2>{nameOf(report)}</h2>
      <Tiles>
        <Tile name={words.billed} note={words.lines(lines, matched)}>
          <Credits amount={billed} />
        </Tile>
        <Tile name={words.charged} note={words.chargedNote}>
          <Credits amount={margin.charged} />
        </Tile>
        <MarginTile of={margin} />
        <Tile
          name={words.uncharged}
          note={words.items(uncharged.count)}
          isBad={uncharged.count > 0}
        >
          <Credits amount={uncharged.billed} />
        </Tile>
        <Tile name={words.unbilled} note={words.items(unbilled.count)} isBad={unbilled.count > 0}>
          <Credits amount={unbilled.charged} />
        </Tile>
      </Tiles>
      <MarginChart {...report} days={margin.days} />
      {differences.length + uncharged.count + unbilled.count === 0 && <p>{words.agrees}</p>}
      <Found title={words.models} help={words.modelsHelp} count={margin.models.length}>
        <Table
          caption={words.models}
          columns={marginColumns}
          rows={margin.models}
          idOf={({ model }) => model}
        />
      </Found>
      <Found title={words.differences} help={words.differencesHelp} count={differences.length}>
        <Table
          caption={words.differences}
          columns={differenceColumns}
          rows={differences}
          idOf={({ day, model }) => `${day} ${model}`}
        />
      </Found>
      <Found title={words.uncharged} help={words.unchargedHelp} count={uncharged.count}>
        <Table
          caption={words.uncharged}
          columns={unchargedColumns}
          rows={uncharged.data}
          idOf={(row) => JSON.stringify(row)}
        />
        <Rest all={uncharged.count} shown={uncharged.data.length} />
      </Found>
      <Found title={words.unbilled} help={words.unbilledHelp} count={unbilled.count}>
        <Table
          caption={words.unbilled}
          columns={unbilledColumns}
          rows={unbilled.data}
          idOf={(row) => JSON.stringify(row)}
        />
        <Rest all={unbilled.count} shown={unbilled.data.length} />
      </Found>
    </>
  )
}

export const MarginTile = ({ of }: { readonly of: Margin }) => (
  <Tile name={words.margin} note={shareOfMargin(of)} isBad={parseCredits(of.margin) < 0n}>
    <Credits amount={of.margin} />
  </Tile>
)

/** The most days shown; a bill has at most 62. */
const daysMax = 186
const noMargin = { billed: "0.00", charged: "0.00", margin: "0.00" }

interface MarginChartProps {
  readonly from: string
  readonly to: string
  readonly days: Report["margin"]["days"]
}

/** The charges and the vendor's bill per day, with the margin. A single day has no chart. */
export const MarginChart = ({ days: known, from, to }: MarginChartProps) => {
  const days = daysBetween(from, to, daysMax)
  if (days.length < 2) return null
  const marginOn = new Map(known.map((it) => [it.day, it]))
  const all = days.map((day) => marginOn.get(day) ?? noMargin)
  const lines = [
    { name: words.charged, tone: 1, of: "charged" },
    { name: words.billed, tone: 3, of: "billed" },
    { name: words.margin, tone: 2, of: "margin" }
  ] as const
  return (
    <LineChart
      title={words.chart}
      places={days.map((day, index) => {
        const sums = all[index] ?? noMargin
        return {
          label: showDay(day),
          value: words.marginOf(showCredits(sums.margin)),
          parts: lines.slice(0, 2).map(({ name, of, tone }) => ({
            name,
            tone,
            value: showCredits(sums[of]),
            length: Number(sums[of])
          }))
        }
      })}
      lines={lines.map(({ name, of, tone }) => ({
        name,
        tone,
        values: all.map((sums) => Number(sums[of]))
      }))}
      showValue={showAxis}
    />
  )
}

interface FoundProps {
  readonly title: string
  readonly help: string
  readonly count: number
  readonly children: ComponentChildren
}

/** Renders nothing if nothing was found. */
const Found = ({ children, count, help, title }: FoundProps) =>
  count === 0 ? null : (
    <section>
      <h2>{title}</h2>
      <p class="faint">{help}</p>
      {children}
    </section>
  )

const Rest = ({ all, shown }: { readonly all: number; readonly shown: number }) =>
  all > shown ? <p class="faint">{words.shown(shown)}</p> : null

const amountColumn = <Row,>(title: string, of: (row: Row) => string): Column<Row> => ({
  title,
  isNumber: true,
  cell: (row) => <Credits amount={of(row)} />
})

/** The margin as a share of the charges; absent without charges. */
export const shareOfMargin = ({ charged, margin }: Margin): string =>
  parseCredits(charged) === 0n
    ? texts.none
    : words.percent((Number(margin) / Number(charged)) * 100)

/** The billed and charged amounts and the margin. */
export const sumColumns: ReadonlyArray<Column<Margin>> = [
  amountColumn(words.billed, ({ billed }) => billed),
  amountColumn(words.charged, ({ charged }) => charged),
  {
    title: words.margin,
    isNumber: true,
    cell: ({ margin }) => (
      <span class={parseCredits(margin) < 0n ? "loss" : undefined}>
        <Credits amount={margin} />
      </span>
    )
  },
  { title: words.share, isNumber: true, cell: shareOfMargin }
]

const marginColumns: ReadonlyArray<Column<Report["margin"]["models"][number]>> = [
  { title: words.model, isPlain: true, cell: ({ model }) => model },
  ...sumColumns
]

const differenceColumns: ReadonlyArray<Column<Difference>> = [
  { title: words.day, isPlain: true, cell: ({ day }) => showFullDay(day) },
  { title: words.model, isPlain: true, cell: ({ model }) => model },
  amountColumn(words.billed, ({ billed }) => billed),
  amountColumn(words.charged, ({ charged }) => charged),
  amountColumn(words.difference, ({ difference }) => difference)
]

/** A link to a task or a call of any user. */
const Work = ({ call, task }: { readonly call: string | null; readonly task: string | null }) => {
  const id = task ?? call
  return id === null ? <>{words.unknown}</> : <Id name={words.work} value={id} />
}

const unchargedColumns: ReadonlyArray<Column<Uncharged>> = [
  { title: words.day, isPlain: true, cell: ({ day }) => showFullDay(day) },
  { title: words.model, isPlain: true, cell: ({ model }) => model },
  { title: words.id, cell: ({ id }) => (id === null ? <None /> : <code>{id}</code>) },
  {
    title: words.work,
    cell: ({ call_id: call, task_id: task }) => <Work call={call} task={task} />
  },
  amountColumn(words.billed, ({ billed }) => billed)
]

const unbilledColumns: ReadonlyArray<Column<Unbilled>> = [
  { title: words.day, isPlain: true, cell: ({ day }) => showFullDay(day) },
  { title: words.model, isPlain: true, cell: ({ model }) => model },
  {
    title: words.work,
    cell: ({ call_id: call, task_id: task }) => <Work call={call} task={task} />
  },
  amountColumn(words.charged, ({ charged }) => charged)
]
