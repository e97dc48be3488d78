import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { Field, SelectField, TextField } from "../../components/form/Field.tsx"
import { Fold } from "../../components/form/Fold.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { ProblemView } from "../../components/States.tsx"
import { billTexts } from "../../texts/en/bills.ts"
import { AllBills } from "./AllBills.tsx"
import type { Bill } from "./AllBills.tsx"
import { BillReport } from "./BillReport.tsx"

const words = billTexts

const vendors = ["openai", "anthropic", "gemini", "dashscope", "fal", "replicate"] as const
type Vendor = (typeof vendors)[number]

const columnNames = ["id", "model", "date", "amount"] as const
type ColumnNames = { readonly [name in (typeof columnNames)[number]]?: string }

type Outcome = { readonly cause: unknown; readonly name: string } | "reading" | undefined

/** A file that is compared again replaces its earlier comparison. */
const isSame = (one: Bill, other: Bill): boolean =>
  one.report.vendor === other.report.vendor && one.file === other.file

/** The column names that were entered. */
const filled = (names: ColumnNames): ColumnNames =>
  Object.fromEntries(Object.entries(names).filter(([, name]) => name.trim() !== ""))

/** `/bills`: vendors' bills compared with what was bought and charged. */
export default function BillsPage() {
  const [vendor, setVendor] = useState<Vendor>("openai")
  const [files, setFiles] = useState<ReadonlyArray<File>>([])
  const [names, setNames] = useState<ColumnNames>({})
  const [isMissing, setMissing] = useState(false)
  const [outcome, setOutcome] = useState<Outcome>(undefined)
  const [bills, setBills] = useState<ReadonlyArray<Bill>>([])
  const [shown, setShown] = useState<Bill | undefined>(undefined)
  const read = async (file: File) => {
    const columns = filled(names)
    const body = {
      vendor,
      bill: await file.text(),
      ...(Object.keys(columns).length === 0 ? {} : { columns })
    }
    const report = await api.POST("/manage/v1/reconciliations", { body })
    const bill = { file: file.name, report }
    setBills((all) => [...all.filter((it) => !isSame(it, bill)), bill])
    setShown(bill)
  }
  const remove = (bill: Bill) => {
    const rest = bills.filter((it) => it !== bill)
    setBills(rest)
    if (shown === bill) setShown(rest.at(-1))
  }
  const compare = async () => {
    setOutcome("reading")
    for (const file of files) {
      try {
        // One at a time, because each needs a few MB of the gateway's memory
        // oxlint-disable-next-line no-await-in-loop
        await read(file)
      } catch (cause) {
        setOutcome({ cause, name: file.name })
        return
      }
    }
    setOutcome(undefined)
  }
  return (
    <>
      <PageHeader about={words.about} />
      <form
        class="card form"
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          setMissing(files.length === 0)
          if (files.length > 0) void compare()
        }}
      >
        <SelectField
          label={words.vendor}
          value={vendor}
          options={vendors.map((it) => [it, words.vendors[it]])}
          onText={(value) => setVendor(vendors.find((it) => it === value) ?? "openai")}
        />
        <Field
          label={words.file}
          help={words.fileHelp}
          error={isMissing && files.length === 0 ? words.noFile : undefined}
        >
          {(attributes) => (
            <input
              {...attributes}
              type="file"
              accept=".csv,text/csv"
              multiple
              onChange={({ currentTarget }) => setFiles([...(currentTarget.files ?? [])])}
            />
          )}
        </Field>
        <Fold name={words.columns} isFaulty={false}>
          <p class="help">{words.columnsHelp}</p>
          {columnNames.map((name) => (
            <TextField
              key={name}
              label={words.columnNames[name]}
              value={names[name] ?? ""}
              onText={(value) => setNames({ ...names, [name]: value })}
            />
          ))}
        </Fold>
        <button type="submit" class="primary" disabled={outcome === "reading"}>
          {outcome === "reading" ? words.reading : words.compare}
        </button>
      </form>
      {typeof outcome === "object" && (
        <>
          {files.length > 1 && <p>{words.failed(outcome.name)}</p>}
          <ProblemView cause={outcome.cause} />
        </>
      )}
      {bills.length > 1 && (
        <AllBills bills={bills} shown={shown} onShow={setShown} onRemove={remove} />
      )}
      <div role="status">{shown !== undefined && <BillReport report={shown.report} />}</div>
    </>
  )
}
