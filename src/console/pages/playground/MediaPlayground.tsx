import type { ComponentChildren } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import { api, send } from "../../api/client.ts"
import { newOperationId } from "../../api/operations.ts"
import { ApiFailure, Offline } from "../../api/problem.ts"
import type { Schemas } from "../../api/schema.ts"
import { Code } from "../../components/code/Code.tsx"
import { shortened } from "../../components/code/snippets.ts"
import { plainSchema } from "../../components/form/schema.ts"
import { SchemaForm } from "../../components/form/SchemaForm.tsx"
import type { SchemaFieldProps } from "../../components/form/SchemaForm.tsx"
import { ProblemView } from "../../components/States.tsx"
import { Credits } from "../../components/Values.tsx"
import { promptOf } from "../../format/prompt.ts"
import { shortcutOf } from "../../format/shortcut.ts"
import { location, setQuery, viewedUser } from "../../router/location.ts"
import { texts } from "../../texts/en.ts"
import { playgroundTexts as words } from "../../texts/en/playground.ts"
import { hasDraft, useDraft } from "./draft.ts"
import { MediaInput } from "./MediaInput.tsx"
import { MediaListInput } from "./MediaListInput.tsx"
import { isObject, matching, noteRun } from "./runs.ts"
import { Runs } from "./Runs.tsx"
import { RunView } from "./RunView.tsx"
import { useCtrlEnter } from "./useCtrlEnter.ts"
import { usePrice } from "./usePrice.ts"

export type Body = Readonly<Record<string, unknown>>

/** A run, which may be in progress. */
interface Run {
  /** Until the task has ended, because another run would cost money and hide this one. */
  readonly isBusy: boolean
  readonly id?: string
  readonly cause?: unknown
  /** The idempotency key of a create without a response, which may have succeeded. Retries reuse it. */
  readonly unanswered?: string
}

/** The media field of a pointer: `#/image`, or an item of a list, `#/images/0`. */
const fieldOf = (pointer: string): string => pointer.split("/")[1] ?? ""

const faultsIn = (cause: unknown): ReadonlyMap<string, string> =>
  new Map(
    cause instanceof ApiFailure
      ? cause.problem.errors?.map(({ detail, pointer }) => [pointer, detail])
      : []
  )

const isKept = (value: unknown): boolean => {
  const isLocal = (it: unknown) => typeof it === "string" && /^(?:data|artifact):/u.test(it)
  return Array.isArray(value) ? !value.some(isLocal) : !isLocal(value)
}

/** Files are too large to store, and references to stored files are not accepted. */
const withoutMedia = (body: Body): Body =>
  Object.fromEntries(Object.entries(body).filter(([, value]) => isKept(value)))

/** The body as typed or, for a link to a task, the body of the task. */
const useBody = (
  { body_schema: schema, model, vendor }: Schemas["Model"],
  task: string | undefined
) => {
  const name = `${vendor}/${model}`
  const isNew = useRef(!hasDraft(name)).current
  const [body, setBody, updateBody] = useDraft<Body>(name, {}, withoutMedia)
  useEffect(() => {
    if (task === undefined || !isNew) return
    api.GET("/manage/v1/tasks/{id}", { path: { id: task } }).then(
      ({ body: sent }) => isObject(sent) && setBody(withoutMedia(sent)),
      () => undefined
    )
  }, [])
  const [first] = useState(body)
  // The content of a link is validated; later input is valid by construction
  const valid = (it: Body): Body => {
    const known = it === first ? matching(schema, it) : it
    return isObject(known) ? known : {}
  }
  const change = (next: (before: Body) => Body) => updateBody((before) => next(valid(before)))
  return [valid(body), change] as const
}

/** The run of the task in the address. */
const useRun = (model: Schemas["Model"], body: Body) => {
  const task = location.value.query.get("task") ?? undefined
  const [run, setRun] = useState<Run>(
    task === undefined ? { isBusy: false } : { isBusy: true, id: task }
  )
  const start = async () => {
    const operationId = run.unanswered ?? newOperationId()
    setRun({ isBusy: true })
    try {
      const created = await send<Schemas["CreatedTask"]>("POST", model.path, body, {
        "idempotency-key": operationId
      })
      setRun({ isBusy: true, id: created.task_info.id })
      const id = created.task_info.id
      noteRun(
        { model: `${model.vendor}/${model.model}`, task: id, values: withoutMedia(body) },
        promptOf(body)
      )
      setQuery({ task: id })
    } catch (cause) {
      const lost = cause instanceof Offline ? { unanswered: operationId } : {}
      setRun({ isBusy: false, cause, ...lost })
    }
  }
  return {
    run,
    start,
    end: () => setRun((now) => ({ ...now, isBusy: false })),
    /** A changed body is a new run, so the refusal of this one no longer applies. */
    forget: () => run.cause !== undefined && setRun({ isBusy: false })
  }
}

interface Props {
  readonly model: Schemas["Model"]
  readonly picker: ComponentChildren
}

/** The playground of a task model: form, live price, and run. */
export const MediaPlayground = ({ model, picker }: Props) => {
  const [body, changeBody] = useBody(model, location.value.query.get("task") ?? undefined)
  const { end, forget, run, start } = useRun(model, body)
  const price = usePrice(model, body)
  const form = useCtrlEnter()
  const result = useRef<HTMLElement>(null)
  useEffect(() => {
    // On a phone the result is below the form
    if (run.isBusy || run.cause !== undefined) result.current?.scrollIntoView({ block: "nearest" })
  }, [run.isBusy, run.cause])
  return (
    <>
      <div class="playground">
        <form
          ref={form}
          onSubmit={(event) => {
            event.preventDefault()
            void start()
          }}
        >
          {picker}
          <SchemaForm
            schema={model.body_schema}
            value={body}
            errors={faultsIn(run.cause ?? price.cause)}
            isAdvanced={(name) => name !== "prompt" && model.media[name] === undefined}
            onChange={(change) => {
              changeBody(change)
              forget()
            }}
            custom={(field) => mediumOf(field, model)}
          />
          <div class="run-bar">
            <Price {...price} />
            <kbd class="faint">{shortcutOf("↵")}</kbd>
            <button
              type="submit"
              class="primary"
              disabled={run.isBusy || viewedUser() !== undefined}
            >
              {run.id === undefined ? words.run : words.runAgain}
            </button>
          </div>
        </form>
        <section class="run-result" ref={result} aria-label={words.result}>
          {run.cause !== undefined && <ProblemView cause={run.cause} />}
          {run.id === undefined ? (
            run.cause === undefined && <p class="waiting">{words.noResult}</p>
          ) : (
            <RunView key={run.id} id={run.id} model={model} onEnd={end} />
          )}
        </section>
      </div>
      <Runs model={`${model.vendor}/${model.model}`} values={withoutMedia(body)} />
      <Code request={{ path: model.path, body: shortened(body), headers: { prefer: "wait=60" } }} />
    </>
  )
}

const mediumOf = (field: SchemaFieldProps, model: Schemas["Model"]) => {
  const rules = model.media[fieldOf(field.pointer)]
  if (rules === undefined) return undefined
  return plainSchema(field.schema).type === "array" ? (
    <MediaListInput {...field} rules={rules} />
  ) : (
    <MediaInput {...field} rules={rules} />
  )
}

/** Why there is no price yet: a missing field, an invalid field, or an invalid body. */
const whyNot = (cause: unknown): string => {
  if (!(cause instanceof ApiFailure)) return words.priceLater
  return cause.problem.errors === undefined ? cause.problem.title : words.priceRefused
}

interface PriceProps {
  readonly amount?: string
  readonly cause?: unknown
}

const Price = ({ amount, cause }: PriceProps) => (
  <span class="price" role="status">
    {amount === undefined ? (
      <span class="faint">{whyNot(cause)}</span>
    ) : (
      <strong>
        <Credits amount={amount} /> {texts.credits}
      </strong>
    )}
  </span>
)
