# SPDX-License-Identifier: Apache-2.0
"""Every access of MPI-IO that mpi4py has; each rank reads what it wrote. Argument: the file."""

import sys

from mpi4py import MPI

BYTES = 100
world = MPI.COMM_WORLD
file = MPI.File.Open(world, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
block = 0


def place() -> int:
    """Return the offset of the next block of this rank."""
    global block
    block += 1
    return ((block - 1) * world.size + world.rank) * BYTES


def check(write, read, seek=None) -> None:
    """Write a block of this rank and read it again."""
    at, data, back = place(), bytearray([block]) * BYTES, bytearray(BYTES)
    for access, memory in ((write, data), (read, back)):
        if seek:
            seek(at)
        request = access(memory) if seek else access(at, memory)
        if request is not None:
            request.Wait()
        world.Barrier()
    assert back == data, (write.__name__, back[:4])


def in_two(begin, end):
    """Return a split collective access as one call."""
    def access(*arguments):
        begin(*arguments)
        end(arguments[-1])
    access.__name__ = begin.__name__
    return access


for form in ("_at", "_at_all"):
    check(getattr(file, f"Write{form}"), getattr(file, f"Read{form}"))
    check(getattr(file, f"Iwrite{form}"), getattr(file, f"Iread{form}"))
check(in_two(file.Write_at_all_begin, file.Write_at_all_end),
      in_two(file.Read_at_all_begin, file.Read_at_all_end))
for form in ("", "_all"):
    check(getattr(file, f"Write{form}"), getattr(file, f"Read{form}"), file.Seek)
    check(getattr(file, f"Iwrite{form}"), getattr(file, f"Iread{form}"), file.Seek)
check(in_two(file.Write_all_begin, file.Write_all_end),
      in_two(file.Read_all_begin, file.Read_all_end), file.Seek)

# With the shared pointer the order of ranks is open, but for the ordered calls.
end = block * world.size * BYTES
for write, read in (
    (file.Write_ordered, file.Read_ordered),
    (in_two(file.Write_ordered_begin, file.Write_ordered_end),
     in_two(file.Read_ordered_begin, file.Read_ordered_end)),
    (file.Write_shared, file.Read_shared), (file.Iwrite_shared, file.Iread_shared),
):
    data, back = bytearray(b"s") * BYTES, bytearray(BYTES)
    for access, memory in ((write, data), (read, back)):
        file.Seek_shared(end)
        world.Barrier()
        request = access(memory)
        if request is not None:
            request.Wait()
        world.Barrier()
    assert back == data, (write.__name__, back[:4])

size = end + world.size * BYTES
assert file.Get_size() == size, (file.Get_size(), size)
file.Sync()
file.Set_size(size + 1000)
file.Preallocate(size + 2000)
file.Set_view(BYTES, MPI.BYTE, MPI.BYTE)
assert file.Get_byte_offset(1) == BYTES + 1
file.Close()
with open(sys.argv[1], "rb") as written:
    assert len(written.read()) == size + 2000
sys.stdout.write("right\n")
