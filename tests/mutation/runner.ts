import { it, TestRunner } from 'vitest'

/**
 * What Stryker's runner needs to see: a test file that a mutant keeps from loading has a failed
 * test (it counts tests alone, and a file without any would pass), and after the first failure no
 * further file is loaded.
 */
export default class MutationRunner extends TestRunner {
  private hasFailed = false

  override cancel(reason: Parameters<TestRunner['cancel']>[0]) {
    this.hasFailed = true
    super.cancel(reason)
  }

  override async importFile(filepath: string, source: 'collect' | 'setup') {
    if (source === 'setup') return super.importFile(filepath, source)
    if (this.hasFailed) return
    try {
      await super.importFile(filepath, source)
    } catch (error) {
      it('loads', () => {
        throw error
      })
    }
  }
}
