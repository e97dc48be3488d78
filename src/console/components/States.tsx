import type { ComponentChildren } from "preact"
import { basePath } from "../api/address.ts"
import { ApiFailure, Offline } from "../api/problem.ts"
import type { Schemas } from "../api/schema.ts"
import { texts } from "../texts/en.ts"
import { CopyButton } from "./CopyButton.tsx"

/** How a page looks while it loads, when it is empty, and when loading failed. */

export const Loading = () => (
  <p class="loading" role="status">
    {texts.states.loading}
  </p>
)

const bones = ["a", "b", "c", "d", "e", "f"] as const

interface BonesProps {
  /** The number of figures above the list. */
  readonly tiles?: number
  readonly hasChart?: boolean
  readonly hasRows?: boolean
}

/** Placeholders in the shape of what is loading: a list, or figures and a chart. */
export const LoadingRows = ({ hasChart = false, hasRows = true, tiles = 0 }: BonesProps) => (
  <div class="loading" role="status">
    <span class="hidden">{texts.states.loading}</span>
    {tiles > 0 && (
      <div class="tiles">
        {bones.slice(0, tiles).map((it) => (
          <i key={it} class="tile" />
        ))}
      </div>
    )}
    {hasChart && <i class="chart" />}
    {hasRows && (
      <div class="bones">
        {bones.map((it) => (
          <i key={it} />
        ))}
      </div>
    )}
  </div>
)

interface EmptyProps {
  readonly title: string
  readonly detail?: string | undefined
  readonly children?: ComponentChildren
}

export const Empty = ({ children, detail, title }: EmptyProps) => (
  <div class="empty">
    <p class="empty-title">{title}</p>
    {detail !== undefined && <p>{detail}</p>}
    {children}
  </div>
)

interface ProblemProps {
  readonly cause: unknown
  readonly onRetry?: () => void
}

/** The gateway's problem: title, detail, and the trace id by which the operator can find it. */
export const ProblemView = ({ cause, onRetry }: ProblemProps) => {
  const { detail, title } = wordsOf(cause)
  // The detail repeats the fault of a field, or counts several
  const isListed = cause instanceof ApiFailure && cause.problem.errors !== undefined
  return (
    <div class="problem" role="alert">
      <p class="problem-title">{title}</p>
      {detail !== "" && !isListed && <p>{detail}</p>}
      {cause instanceof ApiFailure && <Particulars failure={cause} />}
      {onRetry !== undefined && (
        <button type="button" class="small" onClick={onRetry}>
          {texts.states.retry}
        </button>
      )}
    </div>
  )
}

/** Why a task failed. */
export const TaskErrorView = ({ error }: { readonly error: Schemas["TaskError"] }) => (
  <div class="problem">
    <p class="problem-title">{error.title}</p>
    <p>{error.detail}</p>
    <p class="faint">
      <CodeLink code={error.code} />
    </p>
  </div>
)

const CodeLink = ({ code }: { readonly code: number }) => (
  <a href={`${basePath}/docs/errors#${code}`} title={texts.states.codeHelp}>
    {texts.states.code(code)}
  </a>
)

const wordsOf = (cause: unknown) => {
  if (cause instanceof ApiFailure) return cause.problem
  if (cause instanceof Offline) {
    return { title: texts.states.offlineTitle, detail: texts.states.offlineDetail }
  }
  return {
    title: texts.states.failedTitle,
    detail: cause instanceof Error ? cause.message : String(cause)
  }
}

const Particulars = ({ failure: { problem, traceId } }: { readonly failure: ApiFailure }) => (
  <>
    {problem.errors !== undefined && (
      <ul>
        {problem.errors.map(({ detail, pointer }) => (
          <li key={pointer + detail}>
            {pointer !== "#" && <code>{pointer.slice(2)}</code>} {detail}
          </li>
        ))}
      </ul>
    )}
    <p class="faint">
      <CodeLink code={problem.code} />
      {traceId !== undefined && (
        <>
          {" · "}
          {texts.states.traceId} <code>{traceId}</code>{" "}
          <CopyButton text={traceId} what={texts.states.traceId} />
        </>
      )}
    </p>
  </>
)

interface LoadedProps<T> {
  readonly of: {
    readonly data: T | undefined
    readonly cause: unknown
    readonly reload: () => void
  }
  readonly children: (data: T) => ComponentChildren
  /** The placeholder shown while loading. */
  readonly bones?: ComponentChildren
}

/** Shows the loaded data, or its state. Data stay visible when a reload fails. */
export const Loaded = <T,>({ bones: own = <LoadingRows />, children, of }: LoadedProps<T>) => {
  const { cause, data, reload } = of
  if (data === undefined) {
    return cause === undefined ? <>{own}</> : <ProblemView cause={cause} onRetry={reload} />
  }
  return (
    <>
      {cause !== undefined && <ProblemView cause={cause} onRetry={reload} />}
      {children(data)}
    </>
  )
}
