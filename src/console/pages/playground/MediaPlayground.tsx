import { useState } from "preact/hooks"
import { send } from "../../api/client.ts"
import { newOperationId } from "../../api/operations.ts"
import { ApiFailure, Offline } from "../../api/problem.ts"
import type { Schemas } from "../../api/schema.ts"
import { plainSchema } from "../../components/schema.ts"
import { SchemaForm } from "../../components/SchemaForm.tsx"
import type { SchemaFieldProps } from "../../components/SchemaForm.tsx"
import { ProblemView } from "../../components/States.tsx"
import { Credits } from "../../components/Values.tsx"
import { viewedUser } from "../../router/location.ts"
import { texts } from "../../texts/en.ts"
import { playgroundTexts as words } from "../../texts/en/playground.ts"
import { Code } from "./Code.tsx"
import { MediaInput } from "./MediaInput.tsx"
import { RunView } from "./RunView.tsx"
import { shortened } from "./snippets.ts"
import { usePrice } from "./usePrice.ts"

export type Body = Readonly<Record<string, unknown>>

/** One run, which may be under way. */
interface Run {
  /** Until the task has ended: another run would be paid for, and hide this one. */
  readonly isBusy: boolean
  readonly id?: string
  readonly cause?: unknown
  /** The key of a create without an answer, which may have bought: the same create is sent under it again. */
  readonly unanswered?: string
}

interface Created {
  readonly task_info: { readonly id: string }
}

/** The media field that a pointer stands for: `#/image`, or an item of a list, `#/images/0`. */
const fieldOf = (pointer: string): string => pointer.split("/")[1] ?? ""

const faultsIn = (cause: unknown): ReadonlyMap<string, string> =>
  new Map(
    cause instanceof ApiFailure
      ? cause.problem.errors?.map(({ detail, pointer }) => [pointer, detail])
      : []
  )

/** A task of a model: its form, its price as one types, its run. */
export const MediaPlayground = ({ model }: { readonly model: Schemas["Model"] }) => {
  const [body, setBody] = useState<Body>({})
  const [run, setRun] = useState<Run>({ isBusy: false })
  const price = usePrice(model, body)
  const faults = faultsIn(run.cause ?? price.cause)
  const start = async () => {
    const operationId = run.unanswered ?? newOperationId()
    setRun({ isBusy: true })
    try {
      const { body: created } = await send<Created>("POST", model.path, body, {
        "idempotency-key": operationId
      })
      setRun({ isBusy: true, id: created.task_info.id })
    } catch (cause) {
      const lost = cause instanceof Offline ? { unanswered: operationId } : {}
      setRun({ isBusy: false, cause, ...lost })
    }
  }
  const end = () => setRun((now) => ({ ...now, isBusy: false }))
  const change = (next: Body) => {
    setBody(next)
    if (run.cause !== undefined) setRun({ isBusy: false })
  }
  const custom = (field: SchemaFieldProps) => {
    const rules = model.media[fieldOf(field.pointer)]
    const isList = plainSchema(field.schema).type === "array"
    return rules === undefined || isList ? undefined : <MediaInput {...field} rules={rules} />
  }
  return (
    <>
      <div class="columns">
        <section>
          <h2>{words.request}</h2>
          <form
            onSubmit={(event) => {
              event.preventDefault()
              void start()
            }}
          >
            <SchemaForm
              schema={model.body_schema}
              value={body}
              errors={faults}
              onValue={change}
              custom={custom}
            />
            <Price amount={price.amount} />
            <button
              type="submit"
              class="primary"
              disabled={run.isBusy || viewedUser() !== undefined}
            >
              {run.id === undefined ? words.run : words.runAgain}
            </button>
          </form>
        </section>
        <section>
          <h2>{words.result}</h2>
          {run.cause !== undefined && <ProblemView cause={run.cause} />}
          {run.id === undefined ? (
            <p class="faint">{words.noResult}</p>
          ) : (
            <RunView key={run.id} id={run.id} model={model} onEnd={end} />
          )}
        </section>
      </div>
      <Code request={{ path: model.path, body: shortened(body), headers: { prefer: "wait=60" } }} />
    </>
  )
}

const Price = ({ amount }: { readonly amount: string | undefined }) => (
  <p role="status">
    {words.price}:{" "}
    {amount === undefined ? (
      <span class="faint">{words.priceLater}</span>
    ) : (
      <strong>
        <Credits amount={amount} /> {texts.credits}
      </strong>
    )}
  </p>
)
