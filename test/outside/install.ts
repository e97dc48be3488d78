import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const folder = import.meta.dirname

/** Installs what a file names, unless it did so before: a mark has the digest of the file. */
const once = (file: string, mark: string, install: () => boolean) => {
  const digest = createHash("sha256").update(readFileSync(file)).digest("hex")
  if (existsSync(mark) && readFileSync(mark, "utf8") === digest) return
  if (install()) writeFileSync(mark, digest)
}

/** No package here needs its install script. */
const installNpm = (cwd: string, command: ReadonlyArray<string>) =>
  once(join(cwd, "package-lock.json"), join(cwd, "node_modules", ".installed-lock"), () => {
    const words = [...command, "--ignore-scripts", "--no-audit", "--no-fund"]
    const { status } = spawnSync("npm", words, { cwd, stdio: "inherit" })
    if (status !== 0) process.exit(status ?? 1)
    return true
  })

/** Into an environment of its own; without Python or PyPI its tests are left out, which is printed. */
const installPython = (cwd: string) => {
  const requirements = join(cwd, "requirements.txt")
  const environment = join(cwd, "node_modules", ".python")
  once(requirements, join(environment, ".installed"), () => {
    rmSync(environment, { recursive: true, force: true })
    const pip = join(environment, "bin", "pip")
    const words = ["install", "--quiet", "--disable-pip-version-check", "--retries", "1"]
    const steps: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
      ["python3", ["-m", "venv", environment]],
      [pip, [...words, "--requirement", requirements]]
    ]
    for (const [program, given] of steps) {
      const { error, status, stderr } = spawnSync(program, given, { encoding: "utf8" })
      if (status === 0) continue
      const reason = error?.message ?? stderr.trim().split("\n").at(-1)
      console.log(`Skipped: ${requirements} cannot be installed here (${reason})`)
      rmSync(environment, { recursive: true, force: true })
      return false
    }
    return true
  })
}

/** Programs of Go, made with the packages of their module; without Go or its proxy they are left out, which is printed. */
const buildGo = (cwd: string) => {
  const made = join(cwd, "node_modules", ".go")
  once(join(cwd, "go.sum"), join(made, ".installed"), () => {
    mkdirSync(made, { recursive: true })
    const words = ["build", "-mod=readonly", "-o", `${made}/`, "./..."]
    const { error, status, stderr } = spawnSync("go", words, { cwd, encoding: "utf8" })
    if (status === 0) return true
    const reason = error?.message ?? stderr.trim().split("\n").at(-1)
    console.log(`Skipped: the programs of ${cwd} cannot be made here (${reason})`)
    rmSync(made, { recursive: true, force: true })
    return false
  })
}

const pythonEnvironments = ["python", "instructor", "litellm", "generated", "schemathesis"]

if (process.argv[2] === "agents") {
  // No registry need have the binaries of other platforms, without which `npm ci` refuses the lock file
  installNpm(join(folder, "agents"), ["install", "--no-save"])
  installPython(join(folder, "agents"))
  for (const name of pythonEnvironments) installPython(join(folder, "languages", name))
  buildGo(join(folder, "languages", "go"))
} else {
  installNpm(folder, ["ci"])
}
