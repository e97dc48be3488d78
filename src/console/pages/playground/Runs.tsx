import { CopyButton } from "../../components/CopyButton.tsx"
import { Ago } from "../../components/Values.tsx"
import { playgroundTexts } from "../../texts/en/playground.ts"
import { lastRuns, linkOf, restore } from "./runs.ts"
import type { Values } from "./runs.ts"

const words = playgroundTexts.runs

/** The latest runs in this browser, each of which can fill the form again, and a link to the current input. */
export const Runs = ({ model, values }: { readonly model: string; readonly values: Values }) => {
  const runs = lastRuns()
  return (
    <section class="runs">
      <div class="table-head">
        <h2>{words.title}</h2>
        <span title={words.linkHelp}>
          <CopyButton text={linkOf(model, values)} what={words.link} label={words.copyLink} />
        </span>
      </div>
      {runs.length === 0 ? (
        <p class="faint">{words.none}</p>
      ) : (
        <ul>
          {runs.map((run) => (
            <li key={run.at}>
              <button type="button" class="quiet" onClick={() => restore(run)}>
                <span class="clip">{run.title === "" ? run.model : run.title}</span>
              </button>
              <span class="faint">
                {run.model} · <Ago at={run.at} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}
